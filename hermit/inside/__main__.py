"""Starts the relay. A script is compiled anew at each start, so everything else lies in modules, which are not.

It is started as a file: to start a directory, Python would import ``runpy`` first and take half as long again.
"""

import gc
import os
import sys

# Nothing that is loaded here ever goes away again: to look for garbage in it would only cost every start.
gc.disable()

sys.path.insert(0, os.path.dirname(__file__))

import relay

# No clean-up is owed, and the listening thread must not delay the end.
os._exit(relay.main(int(sys.argv[1])))
