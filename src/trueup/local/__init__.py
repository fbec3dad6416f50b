"""The local stack: what stands in for AWS and PostgreSQL on one machine.

Each server sits behind one module, so that another can take its place:
`aws` runs MiniStack, `postgres` runs PostgreSQL from a wheel, `flights` is the data of the demo.
Nothing outside `trueup.local` and `trueup.cli` imports from here.
"""
