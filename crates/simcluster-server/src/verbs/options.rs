//! Request options: `CreateOptions`, `UpdateOptions`, `PatchOptions`, `DeleteOptions`, `ListOptions`.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::{Value, json};

use super::Call;
use super::selectors::{FieldSelector, LabelSelector};
use crate::admission::Operation;
use simcluster_model::builtin;
use simcluster_model::codec::body;
use simcluster_model::error::ApiError;
use simcluster_model::field::FieldError;
use simcluster_model::object::put;
use simcluster_model::{golang, object};

/// Longest field manager name, in bytes.
const FIELD_MANAGER_MAX: usize = 128;

/// What a write does with fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Dropped without a word.
    Ignore,
    /// Dropped with a warning: the default.
    Warn,
    /// Refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    /// Everything is done but stored.
    pub(crate) dry_run: bool,
    /// The field manager: as asked for, else from the user agent.
    pub(crate) manager: String,
    /// What happens to unknown fields.
    pub(crate) field_validation: FieldValidation,
    /// `force` of an apply.
    pub(crate) force: bool,
}

impl WriteOptions {
    /// Parses the query of a create or update; `kind` is `CreateOptions` or `UpdateOptions`.
    pub(crate) fn parse(call: &Call, kind: &str) -> Result<Self, ApiError> {
        Self::checked(call, kind, Vec::new())
    }

    /// Parses the query of a patch.
    pub(crate) fn parse_patch(call: &Call, apply: bool) -> Result<Self, ApiError> {
        let mut faults = Vec::new();
        if apply {
            if call.param("fieldManager").unwrap_or_default().is_empty() {
                faults.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
        } else if call.param("force").is_some_and(|force| !force.is_empty()) {
            faults.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        Self::checked(call, "PatchOptions", faults)
    }

    /// Whether anybody wants to know of unknown and repeated fields.
    pub(crate) fn looks_closely(&self) -> bool {
        self.field_validation != FieldValidation::Ignore
    }

    fn checked(call: &Call, kind: &str, mut faults: Vec<FieldError>) -> Result<Self, ApiError> {
        let asked = call.param("fieldManager").unwrap_or_default();
        faults.extend(field_manager_faults(asked));
        let dry_run = dry_run(&call.params("dryRun"), &mut faults);
        let field_validation = match call.param("fieldValidation").unwrap_or_default() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"].map(str::to_owned);
                faults.push(FieldError::not_supported(
                    "fieldValidation",
                    &json!(other),
                    &supported,
                ));
                FieldValidation::Warn
            }
        };
        if !faults.is_empty() {
            return Err(ApiError::invalid_options(kind, &faults));
        }
        let manager =
            if asked.is_empty() { agent_manager(&call.user_agent) } else { asked.to_owned() };
        let force = call.param("force").is_some_and(is_true);
        Ok(Self { dry_run, manager, field_validation, force })
    }
}

impl WriteOptions {
    /// The options as admission shows them; a patch is a create or an update there.
    pub(crate) fn to_json(&self, call: &Call, operation: Operation) -> Value {
        let kind = match operation {
            Operation::Create => "CreateOptions",
            Operation::Update | Operation::Delete => "UpdateOptions",
        };
        let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        if self.dry_run {
            put(&mut options, "dryRun", json!(["All"]));
        }
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(value) = call.param(name).filter(|value| !value.is_empty()) {
                put(&mut options, name, json!(value));
            }
        }
        options
    }
}

fn field_manager_faults(manager: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if manager.len() > FIELD_MANAGER_MAX {
        faults.push(FieldError::too_long("fieldManager", 128));
    }
    for (index, c) in manager.char_indices() {
        if !is_printable(c) {
            let detail = format!("invalid character U+{:04X} (at position {index})", u32::from(c));
            faults.push(FieldError::invalid("fieldManager", &json!(manager), &detail));
        }
    }
    faults
}

fn is_printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

/// The manager of a request that names none: the user agent up to its first slash.
fn agent_manager(agent: &str) -> String {
    let product = agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for c in product.chars().filter(|c| is_printable(*c)) {
        if manager.len() + c.len_utf8() > FIELD_MANAGER_MAX {
            break;
        }
        manager.push(c);
    }
    if manager.is_empty() { "unknown".to_owned() } else { manager }
}

fn dry_run(values: &[&str], faults: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| *value != "All") {
        let supported = ["All".to_owned()];
        faults.push(FieldError::not_supported("dryRun", &json!(values), &supported));
    }
    !values.is_empty()
}

/// A boolean query parameter as the server reads it: `0` and `false` in any case are false, all else
/// is true.
pub(crate) fn is_true(text: &str) -> bool {
    !(text == "0" || text.eq_ignore_ascii_case("false"))
}

/// A number in the query; the 400 is Go's.
fn number(call: &Call, name: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = call.param(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let fault = |error: &ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            IntErrorKind::Empty | IntErrorKind::InvalidDigit | IntErrorKind::Zero | _ => {
                "invalid syntax"
            }
        };
        ApiError::bad_request(format!("strconv.ParseInt: parsing {}: {why}", golang::quote(text)))
    };
    text.parse().map(Some).map_err(|error| fault(&error))
}

/// Options of delete and deletecollection.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    /// Everything is done but stored.
    pub(crate) dry_run: bool,
    /// Grace period asked for, in seconds.
    pub(crate) grace_period_seconds: Option<i64>,
    /// The legacy form of the policy.
    pub(crate) orphan_dependents: Option<bool>,
    /// `Background`, `Foreground` or `Orphan`.
    pub(crate) propagation_policy: Option<String>,
    /// The UID that the object must have.
    pub(crate) uid: Option<String>,
    /// The resourceVersion that the object must have.
    pub(crate) resource_version: Option<String>,
    /// `ignoreStoreReadErrorWithClusterBreakingPotential`: only what cannot be read is to be deleted.
    pub(crate) unreadable: bool,
    /// Whether there are preconditions, be they empty: admission is shown those, too.
    has_preconditions: bool,
}

/// Whether a deletion is of an object that cannot be read any more.
pub(super) const UNREADABLE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

impl DeleteOptions {
    /// From a request.
    pub(crate) fn read(call: &Call) -> Result<Self, ApiError> {
        let body = body::parse_delete_options(&call.body, &call.content_type)?;
        let body = body.map(|mut body| body.decode(builtin::decode_delete_options)).transpose();
        Self::parse(call, body.map_err(ApiError::bad_request)?.as_ref())
    }

    /// From the body if there is one, else from the query. A body hides the whole query (row DE12).
    pub(crate) fn parse(call: &Call, body: Option<&Value>) -> Result<Self, ApiError> {
        let mut faults = Vec::new();
        let mut options = match body {
            Some(body) => Self::from_body(body, &mut faults),
            None => Self::from_query(call, &mut faults)?,
        };
        options.check(&mut faults);
        if !faults.is_empty() {
            return Err(ApiError::invalid_options("DeleteOptions", &faults));
        }
        // Negative periods count as one second.
        options.grace_period_seconds =
            options.grace_period_seconds.map(|s| if s < 0 { 1 } else { s });
        Ok(options)
    }

    /// The options as admission shows them.
    pub(crate) fn to_json(&self) -> Value {
        let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" });
        let mut preconditions = json!({});
        for (name, value) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(value) = value {
                put(&mut preconditions, name, json!(value));
            }
        }
        let given = [
            ("gracePeriodSeconds", self.grace_period_seconds.map(Value::from)),
            ("orphanDependents", self.orphan_dependents.map(Value::from)),
            ("propagationPolicy", self.propagation_policy.clone().map(Value::from)),
            ("dryRun", self.dry_run.then(|| json!(["All"]))),
            (UNREADABLE, self.unreadable.then_some(Value::Bool(true))),
            ("preconditions", self.has_preconditions.then_some(preconditions)),
        ];
        for (name, value) in given {
            if let Some(value) = value {
                put(&mut options, name, value);
            }
        }
        options
    }

    fn from_body(body: &Value, faults: &mut Vec<FieldError>) -> Self {
        let text =
            |path: &str| object::at_path(body, path).and_then(Value::as_str).map(str::to_owned);
        let values: Vec<&str> = body
            .get("dryRun")
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        Self {
            dry_run: dry_run(&values, faults),
            grace_period_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            orphan_dependents: body.get("orphanDependents").and_then(Value::as_bool),
            propagation_policy: text("propagationPolicy"),
            uid: text("preconditions.uid"),
            resource_version: text("preconditions.resourceVersion"),
            unreadable: body.get(UNREADABLE).and_then(Value::as_bool).unwrap_or_default(),
            has_preconditions: body.get("preconditions").is_some_and(|given| !given.is_null()),
        }
    }

    fn from_query(call: &Call, faults: &mut Vec<FieldError>) -> Result<Self, ApiError> {
        let given =
            |name: &str| call.param(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let (uid, resource_version) = (given("uid"), given("resourceVersion"));
        Ok(Self {
            dry_run: dry_run(&call.params("dryRun"), faults),
            grace_period_seconds: number(call, "gracePeriodSeconds")?,
            orphan_dependents: call.param("orphanDependents").map(is_true),
            propagation_policy: call.param("propagationPolicy").map(str::to_owned),
            unreadable: call.param(UNREADABLE).is_some_and(is_true),
            has_preconditions: uid.is_some() || resource_version.is_some(),
            uid,
            resource_version,
        })
    }

    fn check(&self, faults: &mut Vec<FieldError>) {
        self.check_policy(faults);
        let beside = [
            ("propagationPolicy", self.propagation_policy.is_some()),
            ("orphanDependents", self.orphan_dependents.is_some()),
            ("gracePeriodSeconds", self.grace_period_seconds.is_some()),
            ("preconditions", self.has_preconditions),
        ];
        for (field, _) in beside.into_iter().filter(|(_, given)| *given && self.unreadable) {
            let why = format!("cannot be set together with .{field}");
            faults.push(FieldError::invalid(UNREADABLE, &json!(true), &why));
        }
    }

    fn check_policy(&self, faults: &mut Vec<FieldError>) {
        let Some(policy) = &self.propagation_policy else { return };
        if self.orphan_dependents.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            faults.push(FieldError::invalid("propagationPolicy", &json!(policy), why));
        }
        if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
            let supported = ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned);
            faults.push(FieldError::not_supported("propagationPolicy", &json!(policy), &supported));
        }
    }
}

/// Options of list and watch, as far as the query says it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    /// `labelSelector`.
    pub(crate) label_selector: String,
    /// `fieldSelector`.
    pub(crate) field_selector: String,
    /// Page size; 0 is no limit.
    pub(crate) limit: usize,
    /// `continue` token.
    pub(crate) continue_token: String,
    /// `resourceVersion`.
    pub(crate) resource_version: String,
    /// `resourceVersionMatch`.
    pub(crate) resource_version_match: String,
    /// `allowWatchBookmarks`.
    pub(crate) bookmarks: bool,
    /// `sendInitialEvents`.
    pub(crate) send_initial_events: Option<bool>,
    /// `timeoutSeconds`.
    pub(crate) timeout_seconds: Option<i64>,
}

impl ListOptions {
    /// Parses and validates the query of a list or a watch (rows LI15, LI16, WA09).
    pub(crate) fn parse(call: &Call, watch: bool) -> Result<Self, ApiError> {
        let text = |name: &str| call.param(name).unwrap_or_default().to_owned();
        let limit = number(call, "limit")?.and_then(|n| usize::try_from(n).ok());
        let options = Self {
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            limit: limit.unwrap_or_default(),
            continue_token: text("continue"),
            resource_version: text("resourceVersion"),
            resource_version_match: text("resourceVersionMatch"),
            bookmarks: call.param("allowWatchBookmarks").is_some_and(is_true),
            send_initial_events: call.param("sendInitialEvents").map(is_true),
            timeout_seconds: number(call, "timeoutSeconds")?,
        };
        // Part of reading the query: what it says of labels comes before what options may be.
        LabelSelector::parse(&options.label_selector)?;
        FieldSelector::terms(&options.field_selector)?;
        let faults = if watch { options.watch_faults() } else { options.list_faults() };
        if faults.is_empty() {
            return Ok(options);
        }
        Err(ApiError::invalid_options("ListOptions", &faults))
    }

    fn watch_faults(&self) -> Vec<FieldError> {
        const FIELD: &str = "resourceVersionMatch";
        let mut faults = Vec::new();
        let rule = self.resource_version_match.as_str();
        if self.send_initial_events.is_some() {
            if rule != "NotOlderThan" {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                faults.push(FieldError::forbidden(FIELD, why));
            }
        } else if !rule.is_empty() {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            faults.push(FieldError::forbidden(FIELD, why));
        }
        if !matches!(rule, "" | "NotOlderThan") {
            let supported = ["NotOlderThan".to_owned()];
            faults.push(FieldError::not_supported(FIELD, &json!(rule), &supported));
        }
        faults
    }

    fn list_faults(&self) -> Vec<FieldError> {
        const FIELD: &str = "resourceVersionMatch";
        let mut faults = Vec::new();
        let rule = self.resource_version_match.as_str();
        if self.send_initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            faults.push(FieldError::forbidden("sendInitialEvents", why));
        }
        if rule.is_empty() {
            return faults;
        }
        if self.resource_version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            faults.push(FieldError::forbidden(FIELD, why));
        }
        if !self.continue_token.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            faults.push(FieldError::forbidden(FIELD, why));
        }
        if !matches!(rule, "Exact" | "NotOlderThan") {
            let supported = ["Exact", "NotOlderThan", ""].map(str::to_owned);
            faults.push(FieldError::not_supported(FIELD, &json!(rule), &supported));
        }
        if rule == "Exact" && self.resource_version == "0" {
            let why = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
            faults.push(FieldError::forbidden(FIELD, why));
        }
        faults
    }
}
