"""Plans: what every rank does, in what order, as plain data. No torch here."""

from disttutor.plans.bubbles import BUBBLES, Bubble
from disttutor.plans.check import check
from disttutor.plans.collectives import ALGORITHMS, ALL_REDUCES, collective
from disttutor.plans.machine import Device, Link, Machine
from disttutor.plans.mesh import Mesh
from disttutor.plans.op import COMM, COMPUTE, RECEIVES, Key, Op
from disttutor.plans.partial_sums import Collective, partial_sums
from disttutor.plans.pipelines import EveryMicrobatch, StageWork, forward_pass, pipedream, pipeline_step, staleness
from disttutor.plans.plan import Goal, Plan, PlanError, Report, index, partners
from disttutor.plans.rendezvous import rendezvous
from disttutor.plans.schedule import Action, Schedule, parse_order
from disttutor.plans.schedules import SCHEDULES, VIRTUAL, build_schedule
from disttutor.plans.splitting import check_cut, spans, split_by_cost, split_evenly
from disttutor.plans.training import FORMS, Gradient, bucket_nbytes, data_parallel_step, header_bucket, make_buckets
from disttutor.plans.walk import Stuck, walk

__all__ = ["ALGORITHMS", "ALL_REDUCES", "Action", "BUBBLES", "Bubble", "COMM", "COMPUTE", "Collective", "Device",
           "EveryMicrobatch", "FORMS", "Goal", "Gradient", "Key", "Link", "Machine", "Mesh", "Op", "Plan",
           "PlanError", "RECEIVES", "Report", "SCHEDULES", "Schedule", "StageWork", "Stuck", "VIRTUAL",
           "bucket_nbytes", "build_schedule", "check", "check_cut", "collective", "data_parallel_step",
           "forward_pass", "header_bucket", "index", "make_buckets", "parse_order", "partial_sums",
           "partners", "pipedream", "pipeline_step", "rendezvous", "spans", "split_by_cost",
           "split_evenly", "staleness", "walk"]
