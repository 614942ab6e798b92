"""The binary tasks that the papers and the data folder's README make of the raw sets."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.datasets._labels import Positive

TOPPUSH = "TopPush (Li, Jin and Zhou 2014), Table 2"
KERNEL = "kernelized ranking (Macha, Adam and Smidl 2020), Table 2"
OWN = "the set's own two classes, oriented as in its manifest"
README = "README of the data folder"


class Task(NamedTuple):
    """Which labels of a set are positive, in words and for `binarize`, and who says so."""

    positive: Positive
    meaning: str
    source: str


def _is_attack(labels: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(labels != "normal")


TASKS = MappingProxyType(
    {
        # Tables that list 500 positives follow LIBSVM, where +1 is "tested negative".
        "diabetes": Task(0, "tested negative (500), the orientation of the table", TOPPUSH),
        "20newsgroups": Task("misc.forsale", "newsgroup misc.forsale", TOPPUSH),
        "nslkdd": Task(_is_attack, "any attack", TOPPUSH),
        "spambase": Task(1, "spam", TOPPUSH),
        "w8a": Task(1, "class +1", TOPPUSH),
        "ionosphere": Task("g", "good radar return", KERNEL),
        "winequality-white": Task((7, 8, 9), "quality 7, 8 or 9", KERNEL),
        "winequality-red": Task((7, 8), "quality 7 or 8", KERNEL),
        "fashion-mnist": Task(0, "T-shirt/top", KERNEL),
        "a9a": Task(1, "income above 50K", OWN),
        "australian": Task(1, "class 1", OWN),
        "bank_marketing": Task("yes", "subscribed", OWN),
        "creditcard_fraud": Task(1, "fraud", OWN),
        "farm-ads": Task(1, "approved advertisement", OWN),
        "german": Task(2, "bad credit", OWN),
        "heart": Task(2, "heart disease present", OWN),
        "hiva": Task(1, "active against HIV", OWN),
        "http": Task(1, "attack", OWN),
        "kddcup99_10pct": Task(_is_attack, "any attack", OWN),
        "magic04": Task("g", "gamma signal", OWN),
        "mammography": Task(1, "calcification", OWN),
        "oil_spill": Task(1, "oil slick", OWN),
        "phishing_websites": Task(-1, "phishing", OWN),
        "protein_homo": Task(1, "homologous", OWN),
        "smtp": Task(1, "attack", OWN),
        "svmguide3": Task(1, "class +1", OWN),
        "w1a": Task(1, "class +1", OWN),
        "abalone": Task(19, "19 rings", README),
        "covtype": Task(2, "cover type 2", README),
        "ecoli": Task("imU", "localisation site imU", README),
        "letter": Task("Z", "letter Z", README),
        "pendigits": Task(5, "digit 5", README),
        "satimage": Task(4, "soil class 4", README),
        "yeast": Task("ME2", "localisation site ME2", README),
    }
)
