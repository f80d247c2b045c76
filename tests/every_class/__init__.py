"""Every statement on every class of problems and option, against exact moments or enumeration.

`pairwise` covers options, `classes` makes problems from them, `noise` enumerates what a minibatch can be,
`algorithms` has some of every family within the hypotheses, `affine` judges by exact laws. Where no law is
known: `scalar` has clients on the line, `grids` their laws by quadrature, `steps` one or two updates by
quadrature, `beyond` names the exact side of every statement.
"""
