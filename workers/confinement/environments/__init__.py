"""Installs the packages of user code: one virtual environment for each set of requirements.

`request` identifies an environment by a **digest**, `environments` finds or builds it, `building` runs the
installer in a sandbox, and `proxy` is its only way to the package index. `inside` is the program that runs in
the sandbox; it needs only the standard library. `folder` keeps the built environments: one that is **held**
is not removed. A built one is **sealed**, so that no other process can change it, and its **facts**
list its packages.
"""
