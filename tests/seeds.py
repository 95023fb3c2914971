"""A test of several seeds, which costs less than a test for each."""

from functools import wraps
from inspect import signature


def seeded(seeds):
    """Call a test with each seed, which the traceback shows."""

    def decorate(test):
        @wraps(test)
        def repeated(**given):
            for seed in seeds:
                test(seed=seed, **given)

        del repeated.__wrapped__
        parameters = [one for one in signature(test).parameters.values() if one.name != "seed"]
        repeated.__signature__ = signature(test).replace(parameters=parameters)
        return repeated

    return decorate
