"""Properties that are computed once: kept with the object, without a lock that others could wait for."""

import pickle
from dataclasses import dataclass, replace
from threading import Barrier, Event, Thread

from bemkl._numerics.threads import lazy_property


@dataclass(frozen=True)
class Numbers:
    values: tuple

    @lazy_property
    def total(self):
        """Sum of the values."""
        return [sum(self.values)]


def test_it_is_computed_once_and_kept_with_the_object():
    numbers = Numbers((1, 2))
    assert "total" not in vars(numbers)
    assert numbers.total == [3]
    assert numbers.total is numbers.total is vars(numbers)["total"]
    assert replace(numbers, values=(5,)).total == [5]
    assert Numbers.total.__doc__ == "Sum of the values."


def test_what_was_computed_is_pickled_and_may_be_forgotten():
    numbers = Numbers((1, 2))
    assert vars(pickle.loads(pickle.dumps(numbers))) == {"values": (1, 2)}
    numbers.total.append("kept")
    copy = pickle.loads(pickle.dumps(numbers))
    assert copy.total == [3, "kept"]
    vars(copy).pop("total")
    assert copy.total == [3]


def test_objects_of_a_class_do_not_wait_for_each_other():
    """Nor does an object for another thread that computes the same."""
    started, leave = Event(), Event()

    class Slow:
        waits = True

        @lazy_property
        def value(self):
            if self.waits:
                started.set()
                leave.wait(timeout=10.0)
            return object()

    slow, quick = Slow(), Slow()
    quick.waits = False
    thread = Thread(target=lambda: slow.value)
    thread.start()
    assert started.wait(timeout=10.0)
    assert quick.value is quick.value
    slow.waits = False
    first = slow.value
    leave.set()
    thread.join(timeout=10.0)
    assert slow.value is first


def test_threads_that_compute_at_the_same_time_get_the_same():
    together, found = Barrier(4, timeout=10.0), []

    class Shared:
        @lazy_property
        def value(self):
            together.wait()
            return object()

    shared = Shared()
    threads = [Thread(target=lambda: found.append(shared.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10.0)
    assert len(found) == 4
    assert set(map(id, found)) == {id(shared.value)}
