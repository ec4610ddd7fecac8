"""The portal's codes for programmes, types and statuses, in words."""

from __future__ import annotations

from tidings.pipelines.eu_funding.body import Status, Type

STATUS_CODES: dict[str, Status] = {"31094501": "forthcoming", "31094502": "open", "31094503": "closed"}
CODES_OF_STATUS = {status: code for code, status in STATUS_CODES.items()}
TYPE_CODES: dict[str, Type] = {"0": "tender", "1": "grant", "2": "call", "6": "update", "8": "cascade"}

TYPE_NAMES: dict[Type, str] = {
    "tender": "Tender",
    "grant": "Grant",
    "call": "Call for proposals",
    "update": "Update",
    "cascade": "Cascade funding",
}

PROGRAMMES: dict[str, tuple[str, str]] = {
    "43108390": ("HORIZON", "Horizon Europe"),
    "43152860": ("DIGITAL", "Digital Europe Programme"),
    "44181033": ("EDF", "European Defence Fund"),
    "43252405": ("LIFE", "Programme for the Environment and Climate Action"),
    "43252476": ("SMP", "Single Market Programme"),
    "111111": ("RELEX", "EU External Action"),
    "43298916": ("EURATOM", "Euratom Research and Training Programme"),
    "43251589": ("CERV", "Citizens, Equality, Rights and Values Programme"),
    "43251567": ("CEF", "Connecting Europe Facility"),
    "43251814": ("CREA", "Creative Europe Programme"),
    "43353764": ("ERASMUS", "Erasmus+"),
    "31045243": ("H2020", "Horizon 2020"),
    "43252449": ("RFCS", "Research Fund for Coal and Steel"),
    "43254019": ("ESF", "European Social Fund"),
    "43637601": ("PPPA", "Pilot Projects and Preparatory Actions"),
    "44416173": ("I3", "Interregional Innovation Investments"),
    "43252368": ("ISF", "Internal Security Fund"),
    "44773066": ("JTM", "Just Transition Mechanism"),
    "31059643": ("COSME", "Competitiveness of Enterprises and SMEs"),
    "43252386": ("JUST", "Justice Programme"),
    "45532249": ("EUBA", "EU Bodies and Agencies"),
    "43252433": ("PERICLES", "Protection of the Euro against Counterfeiting"),
    "43252517": ("SOCPL", "Social Prerogative and Specific Competencies Lines"),
    "43253967": ("RENEWFM", "Renewable Energy Financing Mechanism"),
    "43254037": ("ESC", "European Solidarity Corps"),
    "43697167": ("EP", "European Parliament"),
    "43089234": ("INNOVFUND", "Innovation Fund"),
    "43392145": ("EMFAF", "European Maritime, Fisheries and Aquaculture Fund"),
    "45876777": ("NDICI", "Neighbourhood, Development and International Cooperation Instrument"),
    "46324255": ("ERDF-TA", "Technical assistance for ERDF, CF and JTF"),
}
"""Code to abbreviation and name. The portal adds one every few years; unknown ones keep their number."""


def programme_of(code: str | None) -> tuple[str | None, str | None]:
    """Return a programme's abbreviation and name."""
    if code is None:
        return None, None
    return PROGRAMMES.get(code, (code, None))
