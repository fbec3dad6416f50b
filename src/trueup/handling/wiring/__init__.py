"""The real things behind the handlers, made once a process from the environment that template.yaml sets.

One module a function, because a function that starts cold pays for every module that it imports; and `accept`
starts cold as often at one moment as there are tasks that end in it.
"""
