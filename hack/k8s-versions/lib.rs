//! Empty: what is shown is in `tests`.
