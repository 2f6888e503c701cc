"""The process that starts and ends commands for the runtime; see `loop`.

Its modules run under ``python -I -S`` with nothing but the standard library, and import only
what starts fast: each import here is paid by the first command of every runtime.
"""
