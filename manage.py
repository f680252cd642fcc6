#!/usr/bin/env python
"""Django's entry; `up`, `demo`, `scheduler`, `worker`, `serve`, `token`, `audit` are its commands."""

import gc
import os
import sys

if __name__ == "__main__":
    gc.disable()  # until the apps are loaded; see `WebappConfig.ready`
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings.main")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
