"""Plans: what every rank does, in what order, as plain data. No torch here."""

from disttutor.plans.check import check, dependencies, representatives
from disttutor.plans.machine import Device, Link, Machine
from disttutor.plans.mesh import Mesh
from disttutor.plans.op import COMM, COMPUTE, Key, Op
from disttutor.plans.plan import Plan, PlanError, Report, index, partners
from disttutor.plans.training import FORMS, Gradient, bucket_nbytes, data_parallel_step, header_bucket, make_buckets

__all__ = ["COMM", "COMPUTE", "FORMS", "Device", "Gradient", "Key", "Link", "Machine", "Mesh", "Op", "Plan",
           "PlanError", "Report", "bucket_nbytes", "check", "data_parallel_step", "dependencies", "header_bucket",
           "index", "make_buckets", "partners", "representatives"]
