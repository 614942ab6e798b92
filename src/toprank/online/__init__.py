"""Rankers that learn from a stream, one row at a time."""

from toprank.online.adaoam import AdaOAM
from toprank.online.cbr import CBR
from toprank.online.oam import OAM
from toprank.online.opauc import OPAUC
from toprank.online.uniexp import UniExp

__all__ = ["CBR", "OAM", "OPAUC", "AdaOAM", "UniExp"]
