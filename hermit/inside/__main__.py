"""Starts the relay. A script is compiled anew at each start, so everything else lies in modules, which are not.

It is started as a file: to start a directory, Python would import ``runpy`` first and take half as long again.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))

import relay

# No clean-up is owed, and the listening thread must not delay the end.
os._exit(relay.main(int(sys.argv[1])))
