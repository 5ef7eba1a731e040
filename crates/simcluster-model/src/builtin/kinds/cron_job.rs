//! CronJobs.

use std::num::IntErrorKind;

use serde_json::{Value, json};

use super::job;
use crate::builtin::cells::{View, selector_text};
use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, inner, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::selector::shown_selector;
use crate::builtin::value::{at, flag, int, items, text};
use crate::builtin::workload::{POD_NAMES, name_warning};
use crate::field::FieldError;
use crate::golang;
use crate::object;

/// Jobs are named after their `CronJob`, and have eleven letters more.
const NAME_MAX: usize = 52;

/// `cronjobs`.
pub(super) static KIND: Kind = Kind {
    generation: Generation::Spec,
    status_subresource: true,
    default,
    validate,
    validate_update: Some(|job, old| spec_faults(job, Some(old))),
    warnings,
    cells,
    ..Kind::new("batch", "cronjobs")
};

fn default(job: &mut Fields) {
    let spec = inner(job, "spec");
    set(spec, "concurrencyPolicy", || json!("Allow"));
    set(spec, "suspend", || json!(false));
    set(spec, "successfulJobsHistoryLimit", || json!(3));
    set(spec, "failedJobsHistoryLimit", || json!(1));
}

fn validate(job: &Value) -> Vec<FieldError> {
    let mut faults = Faults(spec_faults(job, None));
    let name = object::name(job);
    if name.len() > NAME_MAX {
        faults.invalid("metadata.name", &json!(name), "must be no more than 52 characters");
    }
    faults.0
}

fn spec_faults(job: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let spec = at(job, &["spec"]).unwrap_or(&Value::Null);
    let mut declared = Faults::default();
    match text(spec, &["schedule"]) {
        "" => declared.required("spec.schedule", ""),
        given => {
            let before = old.is_some_and(|old| text(old, &["spec", "schedule"]).contains("TZ"));
            schedule(given, before, at(spec, &["timeZone"]).is_some(), &mut faults);
        }
    }
    let deadline = int(spec, &["startingDeadlineSeconds"]);
    faults.not_negative("spec.startingDeadlineSeconds", deadline);
    let zone = |one: &Value| at(one, &["spec", "timeZone"]).cloned();
    if old.is_none_or(|old| zone(old) != zone(job)) {
        time_zone(at(spec, &["timeZone"]).and_then(Value::as_str), &mut faults);
    }
    let policy = text(spec, &["concurrencyPolicy"]);
    faults.one_of("spec.concurrencyPolicy", policy, &["Allow", "Forbid", "Replace"]);
    let template = at(spec, &["jobTemplate", "spec"]).unwrap_or(&Value::Null);
    job::validate_spec(template, "spec.jobTemplate.spec", &mut faults);
    if let Some(selector) = at(template, &["selector"]) {
        let field = "spec.jobTemplate.spec.selector";
        faults.invalid_shown(field, &shown_selector(selector), "`selector` will be auto-generated");
    }
    if flag(template, &["manualSelector"]) {
        let known = ["nil", "false"].map(str::to_owned);
        let field = "spec.jobTemplate.spec.manualSelector";
        faults.add(FieldError::not_supported(field, &json!(true), &known));
    }
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        faults.not_negative(format!("spec.{field}"), int(spec, &[field]));
    }
    faults.extend(declared.0);
    faults.0
}

fn schedule(given: &str, may_have_zone: bool, has_zone: bool, faults: &mut Faults) {
    let field = "spec.schedule";
    if let Err(why) = parse(given) {
        faults.invalid(field, &json!(given), &why);
    }
    if given.contains("TZ") && !may_have_zone {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        faults.invalid(field, &json!(given), why);
    } else if given.contains("TZ") && has_zone {
        let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        faults.invalid(field, &json!(given), why);
    }
}

fn time_zone(zone: Option<&str>, faults: &mut Faults) {
    let Some(zone) = zone else { return };
    let field = "spec.timeZone";
    let good = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let odd = |part: &str| {
        part.is_empty()
            || matches!(part, "." | "..")
            || part.starts_with('-')
            || !part.chars().all(good)
    };
    if zone.is_empty() {
        faults.invalid(field, &json!(zone), "timeZone must be nil or non-empty string");
    } else if zone.split('/').any(odd) {
        faults.invalid(field, &json!(zone), &format!("unknown time zone {zone}"));
    } else if zone.eq_ignore_ascii_case("local") {
        let why =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        faults.invalid(field, &json!(zone), why);
        // The one that is known is the server's own.
        if zone != "Local" {
            faults.invalid(field, &json!(zone), &format!("unknown time zone {zone}"));
        }
    }
}

/// Lowest and highest value of a field of a schedule, and the names of its values from the lowest on.
type Bounds = (i64, i64, &'static [&'static str]);

const FIELDS: [Bounds; 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Reads a schedule as `github.com/robfig/cron/v3` does; what is wrong with it in that library's words.
fn parse(given: &str) -> Result<(), String> {
    const NAMED: [&str; 7] =
        ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    let zoned = given.starts_with("TZ=") || given.starts_with("CRON_TZ=");
    let plain = match given.split_once(' ') {
        Some((_, rest)) if zoned => rest.trim(),
        _ => given,
    };
    if plain.starts_with('@') {
        return match plain.strip_prefix("@every ").map(golang::duration_fault) {
            Some(None) => Ok(()),
            Some(Some(why)) => Err(format!("failed to parse duration {plain}: {why}")),
            None if NAMED.contains(&plain) => Ok(()),
            None => Err(format!("unrecognized descriptor: {plain}")),
        };
    }
    let fields: Vec<&str> = plain.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let shown = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{shown}]", fields.len()));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            check_range(range, bounds)?;
        }
    }
    Ok(())
}

fn check_range(range: &str, (low, high, names): Bounds) -> Result<(), String> {
    let number = |text: &str| -> Result<i64, String> {
        let named = (low..).zip(names).find(|(_, name)| text.eq_ignore_ascii_case(name));
        named.map_or_else(|| whole_number(text), |(value, _)| Ok(value))
    };
    let parts: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = parts.first().copied().unwrap_or_default().split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (low, high),
        [one] => (number(one)?, number(one)?),
        [start, end] => (number(start)?, number(end)?),
        _ => return Err(format!("too many hyphens: {range}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => whole_number(step)?,
        _ => return Err(format!("too many slashes: {range}")),
    };
    if parts.len() == 2 && ends.len() == 1 {
        end = high;
    }
    if start < low {
        return Err(format!("beginning of range ({start}) below minimum ({low}): {range}"));
    }
    if end > high {
        return Err(format!("end of range ({end}) above maximum ({high}): {range}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn whole_number(text: &str) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number),
        Err(error) => {
            let too_big =
                matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
            let why = if too_big { "value out of range" } else { "invalid syntax" };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}"))
        }
    }
}

fn warnings(job: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found: Vec<String> = name_warning(job, old, POD_NAMES).into_iter().collect();
    if old.is_none_or(|old| KIND.generation.rises(job, old)) {
        let template = at(job, &["spec", "jobTemplate", "spec"]).unwrap_or(&Value::Null);
        found.extend(job::spec_warnings(template, "spec.jobTemplate.spec"));
    }
    found
}

fn cells(view: View<'_>) -> Vec<Value> {
    let template = "/spec/jobTemplate/spec";
    let containers = format!("{template}/template/spec/containers");
    let or_none = |pointer: &str| match view.str(pointer) {
        "" => json!("<none>"),
        other => json!(other),
    };
    let last = match view.str("/status/lastScheduleTime") {
        "" => "<none>".to_owned(),
        _ => view.since("/status/lastScheduleTime"),
    };
    let suspended = if flag(view.object, &["spec", "suspend"]) { "True" } else { "False" };
    view.named(vec![
        view.text("/spec/schedule"),
        or_none("/spec/timeZone"),
        json!(suspended),
        json!(items(view.object, &["status", "active"]).len()),
        json!(last),
        view.age(),
        view.joined(&containers, "name"),
        view.joined(&containers, "image"),
        json!(selector_text(view.object.pointer(&format!("{template}/selector")))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for good in
            ["* * * * *", "*/5 0-3 1,15 jan-MAR 0", "@every 1h", "@daily", "TZ=UTC 0 0 * * ?"]
        {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                "*/99999999999999999999 * * * *",
                "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": \
                 value out of range",
            ),
            (
                "@every 1d",
                "failed to parse duration @every 1d: time: unknown unit \"d\" in duration \"1d\"",
            ),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(parse(bad), Err(why.to_owned()), "{bad}");
        }
    }
}
