"""Options from the command line and the settings file, and what they come to together.

Both sources hand over the texts as written (``Given``); ``settle`` is the one place that converts them, so
an error can name the source it came from.
"""

from __future__ import annotations

from flink_gpu_discovery.given import Given
from flink_gpu_discovery.models import PID_MAX_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

ALIASES = {"coordination-file": "ledger"}
FLAGS = (
    "check-dead",
    "coordinate",
    "debug",
    "enable-coordination-mode",
    "force",
    "isolate",
    "json",
    "quick",
    "take-busy",
)
# What the settings file may hold: options under the same names as on the command line, and limits.
SETTINGS = (
    "backend",
    "check-dead",
    "coordinate",
    "deadline",
    "id",
    "isolate",
    "ledger",
    "max-gpus-per-owner",
    "max-gpus-per-uid",
    "resource",
    "resources",
    "take-busy",
    "wait",
)
BACKENDS = ("auto", "nvml", "nvidia-smi", "rocm-smi", "amd-sysfs")
ID_KINDS = ("index", "uuid", "ordinal")

_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_MOST_SIMULATED = 4096
_COORDINATION_LEDGER = "flink-gpu-discovery/ledger"
_ISOLATION_LEDGER = "flink-gpu-discovery/root/ledger"


class Options:
    """Everything settled: times in seconds, ``ledger`` an absolute path, ``owner_pid`` 0 for the caller.

    ``other_ledger`` is that of the other mode, coordination or isolation, where both are the host's usual ones, else
    empty. Limits are 0, and ``resources`` are empty, where there is none.
    """

    __slots__ = (
        "backend",
        "check_dead",
        "coordinate",
        "deadline_seconds",
        "force",
        "id_kind",
        "isolate",
        "ledger",
        "max_per_owner",
        "max_per_uid",
        "migrate_upstream",
        "other_ledger",
        "owner_pid",
        "pick_gpu",
        "pick_owner",
        "resource",
        "resources",
        "take_busy",
        "wait_seconds",
    )

    def __init__(
        self,
        *,
        backend: str,
        check_dead: bool,
        coordinate: bool,
        deadline_seconds: float,
        force: bool,
        id_kind: str,
        isolate: bool,
        ledger: str,
        max_per_owner: int,
        max_per_uid: int,
        migrate_upstream: bool,
        other_ledger: str,
        owner_pid: int,
        pick_gpu: str,
        pick_owner: int,
        resource: str,
        resources: tuple[str, ...],
        take_busy: bool,
        wait_seconds: float,
    ) -> None:
        self.backend: Final = backend
        self.check_dead: Final = check_dead
        self.coordinate: Final = coordinate
        self.deadline_seconds: Final = deadline_seconds
        self.force: Final = force
        self.id_kind: Final = id_kind
        self.isolate: Final = isolate
        self.ledger: Final = ledger
        self.max_per_owner: Final = max_per_owner
        self.max_per_uid: Final = max_per_uid
        self.migrate_upstream: Final = migrate_upstream
        self.other_ledger: Final = other_ledger
        self.owner_pid: Final = owner_pid
        self.pick_gpu: Final = pick_gpu
        self.pick_owner: Final = pick_owner
        self.resource: Final = resource
        self.resources: Final = resources
        self.take_busy: Final = take_busy
        self.wait_seconds: Final = wait_seconds

    @property
    def picks_some(self) -> bool:
        """Whether ``reclaim`` is told which records to free."""
        return bool(self.pick_owner or self.pick_gpu)


def settle(command_line: Given, settings: Given, run_folder: str) -> Options:
    """The command line overrides the settings, which override the defaults; ledgers lie below ``run_folder``."""
    sources = (command_line, settings)
    upstream_mode = bool(command_line.yes("enable-coordination-mode"))
    isolate = _flag(sources, "isolate")
    stated = [source.coordinates() for source in sources]
    coordinate = bool(stated[1] if stated[0] is None else stated[0])
    _check_picks(command_line)
    if isolate and upstream_mode:
        raise command_line.error(
            "--enable-coordination-mode takes over upstream's file, which --isolate can't",
            "write --isolate --check-dead, once no task executor of the host uses upstream's script",
        )
    usual, other = _COORDINATION_LEDGER, _ISOLATION_LEDGER
    if isolate:
        usual, other = other, usual
    return Options(
        backend=_backend(sources),
        check_dead=_flag(sources, "check-dead") or upstream_mode,
        coordinate=coordinate,
        deadline_seconds=_seconds(sources, "deadline", 8.0, least=0.1),
        force=_flag(sources, "force"),
        id_kind=_id_kind(sources, isolate, coordinate),
        isolate=isolate,
        ledger=_ledger(sources, f"{run_folder}/{usual}"),
        max_per_owner=_limit(settings, "max-gpus-per-owner"),
        max_per_uid=_limit(settings, "max-gpus-per-uid"),
        migrate_upstream=upstream_mode,
        other_ledger="" if _source(sources, "ledger") else f"{run_folder}/{other}",
        owner_pid=_pid(command_line, "owner-pid"),
        pick_gpu=command_line.text("gpu") or "",
        pick_owner=_pid(command_line, "owner"),
        resource=_resource(sources),
        resources=_resources(settings),
        take_busy=_flag(sources, "take-busy"),
        wait_seconds=_seconds(sources, "wait", 0.0, least=0.0),
    )


def _source(sources: tuple[Given, ...], name: str) -> Given | None:
    for source in sources:
        if source.has(name):
            return source
    return None


def _flag(sources: tuple[Given, ...], name: str) -> bool:
    source = _source(sources, name)
    return bool(source.yes(name)) if source else False


def _id_kind(sources: tuple[Given, ...], isolate: bool, coordinate: bool) -> str:
    source = _source(sources, "id")
    if source is None:
        return "ordinal" if isolate else "index"
    text = source.text("id") or ""
    if text not in ID_KINDS:
        raise source.refuse("id", f"one of {', '.join(ID_KINDS)}")
    if text == "ordinal" and not coordinate:
        raise source.refuse("id", "index or uuid, or add --coordinate: an ordinal is a place among recorded GPUs")
    return text


def _seconds(sources: tuple[Given, ...], name: str, default: float, *, least: float) -> float:
    source = _source(sources, name)
    if source is None:
        return default
    text = source.text(name) or ""
    whole, point, fraction = text.partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 6 and whole and bool(point) == bool(fraction)):
        raise source.refuse(name, "seconds, such as 8 or 2.5")
    if not least <= float(text) <= 3600:
        raise source.refuse(name, f"seconds from {least:g} to 3600")
    return float(text)


def _backend(sources: tuple[Given, ...]) -> str:
    source = _source(sources, "backend")
    if source is None:
        return "auto"
    text = source.text("backend") or ""
    if text not in BACKENDS and simulation(text) is None:
        most = f"N at most {_MOST_SIMULATED}"
        raise source.refuse(
            "backend", f"one of {', '.join(BACKENDS)}, simulated:N or simulated:N,nodes=/dev/NAME%d, {most}"
        )
    return text


def simulation(backend: str) -> tuple[int, str] | None:
    """What ``simulated:N[,nodes=/dev/NAME%d]`` asks for: N and the nodes' pattern; None if it isn't that."""
    kind, _, rest = backend.partition(":")
    count, comma, option = rest.partition(",")
    name, _, pattern = option.partition("=")
    if kind != "simulated" or not (count.isascii() and count.isdigit() and len(count) <= 4):
        return None
    if comma and not (name == "nodes" and pattern.startswith("/dev/") and pattern.count("%") == 1 and "%d" in pattern):
        return None
    return (int(count), pattern) if int(count) <= _MOST_SIMULATED else None


def _ledger(sources: tuple[Given, ...], default: str) -> str:
    source = _source(sources, "ledger")
    if source is None:
        return default
    text = source.text("ledger") or ""
    if not text.startswith("/") or text.endswith("/") or any([character < " " for character in text]):
        # Relative to each caller's own folder, two task executors would keep two ledgers.
        raise source.refuse("ledger", "the absolute path of a file")
    return text


def _resource(sources: tuple[Given, ...]) -> str:
    source = _source(sources, "resource")
    if source is None:
        return "gpu"
    text = source.text("resource") or ""
    if not _is_resource(text):
        raise source.refuse("resource", "at most 64 letters, digits, '.', '_' and '-'")
    return text


def _is_resource(text: str) -> bool:
    return bool(text) and len(text) <= 64 and not text.strip(_NAME_CHARACTERS) and text != "-"


def _resources(settings: Given) -> tuple[str, ...]:
    text = settings.text("resources")
    if text is None:
        return ()
    names = tuple([name.strip() for name in text.split(",")])
    if not all([_is_resource(name) for name in names]):
        raise settings.refuse("resources", "names of external resources, separated by commas")
    return names


def _limit(settings: Given, name: str) -> int:
    text = settings.text(name)
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text) > 0):
        raise settings.refuse(name, "a number of GPUs from 1 to 9999")
    return int(text)


def _check_picks(command_line: Given) -> None:
    """``reclaim`` takes one of --owner and --gpu, and --force only with one."""
    picks = [name for name in ("owner", "gpu") if command_line.has(name)]
    if len(picks) > 1:
        raise command_line.refuse("owner", "either --owner or --gpu")
    if command_line.has("force") and not picks:
        raise command_line.error("--force alone would free every GPU", "add --owner PID or --gpu ID")


def _pid(command_line: Given, name: str) -> int:
    text = command_line.text(name)
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 7 and 1 < int(text) <= PID_MAX_LIMIT):
        raise command_line.refuse(name, "the task executor's process id, above 1")
    return int(text)
