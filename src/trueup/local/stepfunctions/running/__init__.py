"""Running machines: executions are coroutines, and a state is a function from its input to its output.

Importing the modules below registers how each type of state is performed.
"""

from trueup.local.stepfunctions.running import distributed_map, parallel, states, task

__all__ = ["distributed_map", "parallel", "states", "task"]
