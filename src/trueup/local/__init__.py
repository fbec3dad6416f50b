"""The local stack: what stands in for AWS and PostgreSQL on one machine.

`stack` is all of it, with template.yaml deployed: what `trueup up`, the demo and end-to-end tests stand on.
Each server sits behind one module, so that another can take its place: `aws` runs MiniStack, `postgres` runs
PostgreSQL from a wheel, `ecs` and `stepfunctions` are our own; `faults` lets things go wrong between them;
`flights` is the data of the demo.
Nothing outside `trueup.local` and `trueup.cli` imports from here.
"""
