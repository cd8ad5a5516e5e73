"""Whatever may stand for a controller becomes one, and sees of the queue what it says it may see."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from generators import paper_queue

import queueing_ucrl as qu
from queueing_ucrl.learning.registry import as_controller


class Duck:
    """No base class; all that it says of itself is what a test sets."""

    def __init__(self, **traits):
        self.__dict__.update(traits)
        self.shown = []

    def begin(self, knowledge, rng):
        self.shown.append(knowledge)
        return qu.AdmitAll().begin(knowledge, rng)


class Nameless(qu.Controller):
    def begin(self, knowledge, rng):
        return qu.AdmitAll().begin(knowledge, rng)


@pytest.mark.parametrize("controller", [qu.Oracle(), qu.Thompson(service_rate="unknown"), qu.Ucrl2()], ids=repr)
def test_a_controller_comes_back_as_it_is(controller):
    assert as_controller(controller) is controller


def test_a_name_is_looked_up_with_its_options():
    assert as_controller("oracle") == qu.Oracle()
    assert as_controller("random", {"period": 2.0}) == qu.RandomPolicy(period=2.0)
    with pytest.raises(ValueError, match=r"no controller is called 'orcale'; did you mean oracle\?"):
        as_controller("orcale")


def test_an_object_with_begin_alone_becomes_a_controller_that_is_shown_nothing_special():
    made = as_controller(Duck())
    assert isinstance(made, qu.Controller)
    assert made.name == "Duck"
    assert (made.knows_truth, made.decides_each_arrival, made.sees_ticks) == (False, False, False)
    assert made.knows_service_rate is True
    assert made.cautions(paper_queue()) == []
    assert as_controller(made) is made


def test_what_an_object_says_of_itself_is_kept():
    duck = Duck(
        name="duck",
        knows_truth=True,
        decides_each_arrival=1,
        sees_ticks=True,
        knows_service_rate=False,
        cautions=lambda queue: [f"{len(queue.classes)} classes"],
    )
    made = as_controller(duck)
    assert made.name == "duck"
    assert (made.knows_truth, made.decides_each_arrival, made.sees_ticks) == (True, True, True)
    assert made.knows_service_rate is False
    assert made.cautions(paper_queue()) == ["2 classes"]
    assert as_controller(Nameless()).name == "Nameless"


def test_an_adapted_controller_can_be_sent_to_another_process():
    copy = pickle.loads(pickle.dumps(as_controller(Duck(name="duck", knows_truth=True))))
    assert (copy.name, copy.knows_truth) == ("duck", True)
    assert copy.begin(qu.Knowledge.of(paper_queue()), np.random.default_rng(0)).first().policy is not None


@pytest.mark.parametrize("kind", [qu.Oracle, Duck, Nameless])
def test_a_class_in_place_of_an_object_is_told(kind):
    with pytest.raises(
        TypeError, match=rf"controller {kind.__name__} is a class: give an object of it, {kind.__name__}"
    ):
        as_controller(kind)


@pytest.mark.parametrize("thing", [None, 3, object(), {}, int, Duck(begin=5)], ids=lambda thing: ascii(thing)[:10])
def test_what_is_no_controller_is_refused(thing):
    with pytest.raises(TypeError, match="controller must be a controller's name or an object with `begin`, got <class"):
        as_controller(thing)


@pytest.mark.parametrize("name", ["a\nb", "", 3, None, "x" * 201], ids=lambda name: ascii(name)[:9])
def test_a_name_that_cannot_stand_in_a_table_is_refused(name):
    with pytest.raises((TypeError, ValueError), match="a controller's name"):
        as_controller(Duck(name=name))


@pytest.mark.parametrize("truth", [False, True])
@pytest.mark.parametrize("ticks", [False, True])
@pytest.mark.parametrize("service_rate", [False, True])
def test_knowledge_shows_what_the_controller_may_see(truth, ticks, service_rate):
    queue = paper_queue()
    duck = Duck(knows_truth=truth, sees_ticks=ticks, knows_service_rate=service_rate)
    known = qu.Knowledge.shown_to(as_controller(duck), queue)
    assert known.truth is (queue if truth else None)
    assert math.isnan(known.tick_rate) is not ticks
    for of_service in (known.service_rate, *known.service_rates, *known.rewards.ravel()):
        assert math.isnan(of_service) is not service_rate


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_no_part_of_a_study_shows_the_service_rate_to_a_controller_that_must_not_know_it(engine):
    """The check before a study begins sessions too."""
    duck = Duck(knows_service_rate=False)
    qu.replicate(paper_queue(), [duck], horizon=5.0, replications=3, jobs=1, engine=engine)
    assert len(duck.shown) == 4
    assert all(math.isnan(known.service_rate) for known in duck.shown)
