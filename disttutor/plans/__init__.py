"""Plans: what every rank does, in what order, as plain data. No torch here."""

from disttutor.plans.check import check
from disttutor.plans.machine import Device, Link, Machine
from disttutor.plans.mesh import Mesh
from disttutor.plans.op import COMM, COMPUTE, RECEIVES, Key, Op
from disttutor.plans.plan import Goal, Plan, PlanError, Report, index, partners
from disttutor.plans.training import FORMS, Gradient, bucket_nbytes, data_parallel_step, header_bucket, make_buckets
from disttutor.plans.walk import Stuck, walk

__all__ = ["COMM", "COMPUTE", "Device", "FORMS", "Goal", "Gradient", "Key", "Link", "Machine", "Mesh", "Op", "Plan",
           "PlanError", "RECEIVES", "Report", "Stuck", "bucket_nbytes", "check", "data_parallel_step",
           "header_bucket", "index", "make_buckets", "partners", "walk"]
