"""What each option refuses, and the form that its sentence then asks for."""

LENGTH = "a whole number with a unit (ms, s, m, h, d) such as 5m, or ISO 8601 such as PT5M, at most 36500d"
ABOVE_ZERO = f"{LENGTH} and above zero"
OR_ZERO = f"{LENGTH}; 0s is allowed"
NUMBER = "a whole number from 1 to 1000000"
SWITCH = "true or false (also on, off, 1, 0)"
WINDOW = "HH:MM-HH:MM in UTC with different ends, such as 02:00-05:00, or 00:00-24:00 for always"

WRONG = {
    ABOVE_ZERO: ["", " ", "0s", "PT0S", "300", "-5m", "5 minutes", "00:05", "P1M", "1.5h", "9e99", "$NOWHERE"],
    OR_ZERO: ["", "0", "-1s", "5", "$NOWHERE"],
    NUMBER: ["", "0", "-1", "5_000", "1e3", "0x10", "12h30", "2500000000", "\u0661\u0662", "$NOWHERE"],
    SWITCH: ["", "yes", "2", "$NOWHERE"],
    WINDOW: ["", "05:00-05:00", "02:00-25:00", "25:00-02:00", "2-5", "02:00", "$NOWHERE"],
}
FORMS = {
    ("expire_sessions", "EXPIRE_SESSIONS"): {
        "POLLING_INTERVAL": ABOVE_ZERO,
        "BATCH_SIZE": NUMBER,
        "MAX_RUN_DURATION": ABOVE_ZERO,
        "BATCH_PAUSE": OR_ZERO,
        "LOCK_TIMEOUT": ABOVE_ZERO,
    },
    ("session_retention", "SESSION_RETENTION"): {
        "SICR_RETENTION": ABOVE_ZERO,
        "REFRESH_TERMINAL_RETENTION": ABOVE_ZERO,
        "RETENTION_INTERVAL": ABOVE_ZERO,
        "BATCH_SIZE": NUMBER,
        "MAX_RUN_DURATION": ABOVE_ZERO,
        "NIGHT_WINDOW_UTC": WINDOW,
        "BATCH_PAUSE": OR_ZERO,
        "LOCK_TIMEOUT": ABOVE_ZERO,
        "REDACT_BLOCKED": SWITCH,
    },
}
VARIABLES = [
    (command, f"{prefix}_{name}", form) for (command, prefix), names in FORMS.items() for name, form in names.items()
]
FLAGS = [
    ("expire_sessions", "--polling-interval", ABOVE_ZERO),
    ("expire_sessions", "--batch-size", NUMBER),
    ("expire_sessions", "--max-run-duration", ABOVE_ZERO),
    ("session_retention", "--retention-interval", ABOVE_ZERO),
    ("session_retention", "--batch-size", NUMBER),
    ("session_retention", "--max-run-duration", ABOVE_ZERO),
    ("session_retention", "--night-window", WINDOW),
]
