def started_by_torchrun(): return False
