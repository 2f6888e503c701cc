"""What clients do for a conversation: files, terminals, tools, questions, and their environment.

A connection makes an `Offer` of what it serves and holds it open with `Services.offer`. The
conversation uses what is offered at the moment of each call and asks nobody to wait for more.
"""
