"""Models: one vocabulary, the clients that speak it, the scripted model, and which one runs.

`base` is the interface. `set.open_models` holds the models of a runtime, `provider.Provider` says
where they are, `retry` when a failed call is made again, `scripted` plays a script. Nothing here
imports an HTTP library before a model is called.
"""
