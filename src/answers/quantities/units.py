"""Units of quantities: what they measure, and how much of it; metric prefixes, powers and quotients by rule."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_METRIC = {
    "m": ("length", 1.0), "metre": ("length", 1.0), "meter": ("length", 1.0),
    "g": ("mass", 1e-3), "gram": ("mass", 1e-3),
    "s": ("time", 1.0), "second": ("time", 1.0),
    "l": ("volume", 1e-3), "L": ("volume", 1e-3), "litre": ("volume", 1e-3), "liter": ("volume", 1e-3),
    "N": ("force", 1.0), "newton": ("force", 1.0), "J": ("energy", 1.0), "joule": ("energy", 1.0),
    "W": ("power", 1.0), "watt": ("power", 1.0), "V": ("voltage", 1.0), "volt": ("voltage", 1.0),
    "A": ("current", 1.0), "amp": ("current", 1.0), "ampere": ("current", 1.0), "Ω": ("resistance", 1.0),
    "ohm": ("resistance", 1.0), "Hz": ("frequency", 1.0), "hertz": ("frequency", 1.0), "Pa": ("pressure", 1.0),
    "pascal": ("pressure", 1.0), "mol": ("amount", 1.0), "mole": ("amount", 1.0), "F": ("capacitance", 1.0),
    "C": ("charge", 1.0), "coulomb": ("charge", 1.0), "T": ("induction", 1.0), "eV": ("energy", 1.602176634e-19),
    "cal": ("energy", 4.184), "calorie": ("energy", 4.184), "bar": ("pressure", 1e5), "B": ("data", 1.0),
    "byte": ("data", 1.0), "bit": ("data", 0.125),
}  # fmt: skip
_OTHERS = {
    "in": ("length", 0.0254), "inch": ("length", 0.0254), "inches": ("length", 0.0254), "ft": ("length", 0.3048),
    "foot": ("length", 0.3048), "feet": ("length", 0.3048), "yd": ("length", 0.9144), "yard": ("length", 0.9144),
    "mi": ("length", 1609.344), "mile": ("length", 1609.344),
    "lb": ("mass", 0.45359237), "lbs": ("mass", 0.45359237), "pound": ("mass", 0.45359237),
    "oz": ("mass", 0.028349523125), "ounce": ("mass", 0.028349523125), "t": ("mass", 1e3), "ton": ("mass", 1e3),
    "tonne": ("mass", 1e3), "sec": ("time", 1.0), "min": ("time", 60.0), "minute": ("time", 60.0),
    "h": ("time", 3600.0), "hr": ("time", 3600.0), "hour": ("time", 3600.0), "day": ("time", 86400.0),
    "week": ("time", 604800.0), "month": ("months", 1.0), "year": ("months", 12.0), "yr": ("months", 12.0),
    "gallon": ("gallons", 1.0), "acre": ("acres", 1.0), "ha": ("length^2", 1e4), "hectare": ("length^2", 1e4),
    "°": ("angle", math.pi / 180), "degree": ("angle", math.pi / 180), "deg": ("angle", math.pi / 180),
    "rad": ("angle", 1.0), "radian": ("angle", 1.0), "°C": ("celsius", 1.0), "°F": ("fahrenheit", 1.0),
    "℃": ("celsius", 1.0), "℉": ("fahrenheit", 1.0), "K": ("kelvin", 1.0), "kelvin": ("kelvin", 1.0),
    "degrees celsius": ("celsius", 1.0), "degree celsius": ("celsius", 1.0), "celsius": ("celsius", 1.0),
    "degrees fahrenheit": ("fahrenheit", 1.0), "fahrenheit": ("fahrenheit", 1.0),
    "years old": ("months", 12.0), "year old": ("months", 12.0), "rpm": ("rotation", 1.0), "dB": ("level", 1.0),
    "px": ("pixels", 1.0), "pixel": ("pixels", 1.0),
    "$": ("dollar", 1.0), "dollar": ("dollar", 1.0), "USD": ("dollar", 1.0), "US$": ("dollar", 1.0),
    "cent": ("dollar", 0.01), "¢": ("dollar", 0.01), "€": ("euro", 1.0), "euro": ("euro", 1.0), "EUR": ("euro", 1.0),
    "£": ("sterling", 1.0), "GBP": ("sterling", 1.0), "¥": ("yen", 1.0), "yen": ("yen", 1.0), "yuan": ("yuan", 1.0),
    "RMB": ("yuan", 1.0), "CNY": ("yuan", 1.0), "₹": ("rupee", 1.0), "rupee": ("rupee", 1.0),
    "₩": ("won", 1.0), "won": ("won", 1.0),
    "%": ("", 0.01), "percent": ("", 0.01), "per cent": ("", 0.01), "percentage points": ("", 0.01), "％": ("", 0.01),
    "‰": ("", 1e-3),
    "mph": ("length^1 time^-1", 1609.344 / 3600), "kph": ("length^1 time^-1", 1 / 3.6),
    "kmh": ("length^1 time^-1", 1 / 3.6),
}  # fmt: skip
# Words that count in Chinese, Japanese and Korean: "5个", "5人", "5마리"
_COUNTERS = (
    "个 個 只 隻 人 名 位 条 條 张 張 本 件 辆 輛 头 頭 匹 枚 棵 朵 座 块 "
    "塊 片 颗 顆 根 把 支 台 艘 层 層 次 种 種 つ 冊 羽 杯 명 개 마리 대 권 장"
)
_OTHERS |= dict.fromkeys(_COUNTERS.split(), ("count", 1.0))
_PREFIXES = {"n": 1e-9, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "k": 1e3, "M": 1e6, "G": 1e9}
_PREFIXES |= {"nano": 1e-9, "micro": 1e-6, "milli": 1e-3, "centi": 1e-2, "deci": 1e-1, "kilo": 1e3, "mega": 1e6}
_PREFIXES |= {"giga": 1e9, "T": 1e12, "p": 1e-12, "h": 1e2}
_WORD_POWERS = {"square": 2, "sq": 2, "sq.": 2, "cubic": 3, "cu": 3}
_AFTER_POWERS = {"squared": 2, "cubed": 3}
_TIMES_OF_DAY = ("pm", "am")  # no picometres
_FACTOR = re.compile(r"([^\s/*·^\d]+?)\.?\s*(?:\^?\s*\{?([-−]?\d)\}?)?")


@dataclass(frozen=True)
class Unit:
    """A unit: what it measures, such as ``length^1 time^-1``, empty for percent; and its size in base units."""

    measures: str
    size: float


@lru_cache(2048)
def unit_of(text: str) -> Unit | None:
    """The unit that a text names: ``cm``, ``km/h``, ``square metres``, ``m^2``, ``percent``; None if none."""
    plain = " ".join(text.split())
    if not plain or len(plain) > 40:
        return None
    whole = None if plain in _TIMES_OF_DAY else _simple(plain)
    if whole is not None:
        return Unit(_named(Counter({whole[0]: 1})), whole[1])
    counted: Counter[str] = Counter()
    size = 1.0
    factors = list(_factors(plain))
    if not factors:
        return None
    for factor, power in factors:
        if factor in _TIMES_OF_DAY:
            return None
        unit = _simple(factor)
        if unit is None:
            return None
        counted[unit[0]] += power
        size *= unit[1] ** power
    return Unit(_named(counted), size)


def is_percent(unit: Unit | None) -> bool:
    """Checks whether a unit is a share of a whole."""
    return unit is not None and not unit.measures


def _factors(text: str) -> Iterator[tuple[str, int]]:
    above = True
    for part in re.split(r"\s*(/|\bper\b)\s*", text):
        if part in ("/", "per"):
            above = False
            continue
        words = re.split(r"[\s*·]+", part)
        power = 0
        for place, word in enumerate(words):
            if word in _WORD_POWERS:
                power = _WORD_POWERS[word]
                continue
            if word in _AFTER_POWERS:
                continue
            match = _FACTOR.fullmatch(word)
            after = _AFTER_POWERS.get(words[place + 1], 0) if place + 1 < len(words) else 0
            times = power or after or int(match[2].replace("−", "-") if match and match[2] else 1)
            yield (match[1] if match else word), times if above else -times
            power = 0


def _simple(text: str) -> tuple[str, float] | None:
    """A unit with its prefix, in the singular or the plural; words in any case, symbols as they are written."""
    for name in dict.fromkeys((text, text.rstrip("."), *((text.lower(),) if len(text) > 3 else ()))):
        for spelling in (name, name.removesuffix("s"), name.removesuffix("es")):
            if len(spelling) > 2 or spelling == name:
                if spelling in _OTHERS:
                    return _OTHERS[spelling]
                if spelling in _METRIC:
                    return _METRIC[spelling]
                for prefix, size in _PREFIXES.items():
                    base = spelling.removeprefix(prefix)
                    if base != spelling and base in _METRIC and (len(prefix) > 1) == (len(base) > 3):
                        what, own = _METRIC[base]
                        return what, size * own
    return None


def _named(counted: Counter[str]) -> str:
    flat: Counter[str] = Counter()
    for name, power in counted.items():
        for part in name.split():
            base, _, own = part.partition("^")
            flat[base] += power * int(own or 1)
    volume = flat.pop("volume", 0)
    flat["length"] += 3 * volume
    return " ".join(f"{name}^{power}" for name, power in sorted(flat.items()) if power and name)
