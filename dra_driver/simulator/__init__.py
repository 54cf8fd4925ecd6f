"""A simulated GCU node: a sysfs tree, device nodes and a stateful ``efsmi``, from one YAML file.

The path of a description is ``spec`` (what a person wrote) → ``resolve`` (defaults filled in from
``catalog``) → ``state`` (what the machine is now) → ``tree`` and ``layout`` (what programs see of
it). ``machine`` is the Python interface, ``main`` the command line, ``efsmi`` the tool itself.

The driver never imports this package: it sees a host root and a path of ``efsmi``.
"""
