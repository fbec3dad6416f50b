"""A job whose code hangs when it is loaded, as one does that waits for a network at its import."""

import time

time.sleep(3600)
