"""What can go wrong when a client is asked for a service.

ServiceFailure        the text names the client, what it was asked for, and what happened
+-- ServiceGone       its connection ended, or it took the offer back, before it answered
+-- ServiceSilent     it gave no answer within the deadline
+-- ServiceRefused    it answered with an error
|   +-- ServiceLacks  it does not have what was asked for, such as a file
+-- ServiceGarbled    its answer cannot be used

All of them are `ExecutorError`, so that tools tell them to the model like any failure of an
executor.
"""

from __future__ import annotations

from vaala_executors.errors import ExecutorError


class ServiceFailure(ExecutorError):
    pass


class ServiceGone(ServiceFailure):
    pass


class ServiceSilent(ServiceFailure):
    pass


class ServiceRefused(ServiceFailure):
    pass


class ServiceLacks(ServiceRefused):
    pass


class ServiceGarbled(ServiceFailure):
    pass
