//! What the server knows of a resource: names, scope, schema and the rules of its kind.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::allocation::Reservation;
use crate::error::{ApiError, Names};
use crate::field::{FieldError, Verdict};
use crate::names;
use crate::object;
use crate::schema::Schema;

/// One resource in one served version, built in or from a CRD.
#[derive(Debug, Clone)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Plural name, as in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Categories for kubectl.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Main verbs in discovery order; empty for pure subresource hosts.
    pub verbs: Vec<String>,
    /// Names of subresources, such as `status`.
    pub subresources: Vec<String>,
    /// Paths of the scale subresource, if there is one.
    pub scale: Option<ScalePaths>,
    /// Whether the resource comes from a CRD: errors, lists and discovery differ in form.
    pub custom: bool,
    /// Text of the `Warning` header on every request, for deprecated versions.
    pub deprecation_warning: Option<String>,
    /// Extra field selectors, as dotted paths without a leading dot.
    pub selectable_fields: Vec<String>,
    /// Printer columns of a CRD version (`additionalPrinterColumns` as written).
    pub printer_columns: Vec<Value>,
    /// `group/plural` under which objects are stored; versions of one kind share it.
    pub storage_key: String,
    /// Version in which objects are stored.
    pub storage_version: String,
    /// Structural schema of this version, `metadata` included.
    pub schema: Arc<Schema>,
    /// The rules of the kind.
    pub strategy: Arc<dyn Strategy>,
}

/// JSON paths of the scale subresource, with a leading dot, as CRDs write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// Where the wanted replicas stand.
    pub spec_replicas: String,
    /// Where the counted replicas stand.
    pub status_replicas: String,
    /// Where the selector stands, as text; built-ins compute it from `spec.selector`.
    pub label_selector: Option<String>,
}

impl Resource {
    /// Whether every object is stored as this version shows it, so that it need not be copied to be
    /// shown.
    #[must_use]
    pub fn shows_what_is_stored(&self) -> bool {
        !self.custom && self.strategy.shows_what_is_stored()
    }

    /// `group/version`, or `version` in the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Names for error texts.
    #[must_use]
    pub fn names(&self) -> Names<'_> {
        Names { group: &self.group, plural: &self.plural, kind: &self.kind }
    }

    /// Whether the subresource `name` exists.
    #[must_use]
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|one| one == name)
    }
}

/// A request body turned into the kind's form.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The object: unknown fields pruned, numbers normalised, `apiVersion` and `kind` set.
    pub object: Value,
    /// Paths of the unknown fields that were dropped, in the order the server lists them.
    pub unknown: Vec<String>,
    /// Why the object is none of the resource all the same: said once unknown fields have been.
    pub refused: Option<ApiError>,
}

/// What a strategy may look at beside the object itself.
pub struct Surroundings<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// A random number source of the cluster (seeded).
    pub random: &'a mut dyn FnMut() -> u64,
    /// All stored objects of a resource, by `group/plural` (core: `/plural`).
    pub stored: &'a dyn Fn(&str) -> Vec<Arc<Value>>,
    /// The stored object of a resource by namespace (empty where there is none) and name.
    pub get: &'a dyn Fn(&str, &str, &str) -> Option<Arc<Value>>,
    /// Who asks, as `UserInfo` of `authentication.k8s.io/v1`.
    pub requester: &'a dyn Fn() -> Value,
    /// What a Service gets from the cluster.
    pub reservation: &'a mut Reservation,
    /// Whether the cluster gives a Service something: not to one that is created by way of its status.
    pub allocates: bool,
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("now", &self.now).finish_non_exhaustive()
    }
}

/// The rules of a kind, after `rest.RESTCreateStrategy` and its siblings: what there is to know of it,
/// one trait for each side. The generic rules (names, namespaces, uids, generation, finalizers, owner
/// references, ...) are the server's and not repeated here. `subresource` is empty for the main
/// endpoint.
pub trait Strategy: Decode + Convert + Lifecycle + Validate + FieldLabels + Show {}

impl<T: Decode + Convert + Lifecycle + Validate + FieldLabels + Show> Strategy for T {}

/// How requests become objects of the kind.
pub trait Decode: Send + Sync + fmt::Debug {
    /// Turns a request body into the kind's form. `Err` is the 400 (or 422) that the server answers.
    fn decode(&self, resource: &Resource, body: Value) -> Result<Decoded, ApiError>;

    /// Fills the defaults of the version; also called on objects read from storage.
    fn default(&self, resource: &Resource, object: &mut Value);
}

/// In which form objects of the kind are stored, and where.
pub trait Convert: Send + Sync + fmt::Debug {
    /// From the version of this resource to the stored one (`apiVersion` included).
    fn encode_stored(&self, _resource: &Resource, object: Value) -> Value {
        object
    }

    /// From the stored version to the version of this resource (`apiVersion` included).
    fn decode_stored(&self, _resource: &Resource, object: Value) -> Value {
        object
    }

    /// Whether `decode_stored` leaves every object as it is, so that it need not be copied to be shown.
    fn shows_what_is_stored(&self) -> bool {
        false
    }

    /// Where a real server keeps the objects, below its prefix in etcd: some errors say it.
    fn registry_path(&self, resource: &Resource) -> String {
        format!("{}/{}", resource.group, resource.plural)
    }
}

/// What happens to objects of the kind between a request and their being stored, and how they end.
pub trait Lifecycle: Send + Sync + fmt::Debug {
    /// Clears and fills what a client may not set on create (status, clusterIP, ...). An error is the
    /// answer (an IP that is taken, a kind that forbids it).
    fn prepare_for_create(
        &self,
        resource: &Resource,
        object: &mut Value,
        around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError>;

    /// Fills what a change needs from the cluster (a clusterIP of a Service that becomes one with an
    /// address). Called before `prepare_for_update`, which may keep what was allocated.
    fn allocate_for_update(
        &self,
        _resource: &Resource,
        _subresource: &str,
        _object: &mut Value,
        _old: &Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Restores what a client may not change through this endpoint: without the status subresource's
    /// name, the status; with it, everything but the status.
    fn prepare_for_update(
        &self,
        resource: &Resource,
        subresource: &str,
        object: &mut Value,
        old: &Value,
    );

    /// Whether the kind counts `metadata.generation`, and whether this change raises it.
    fn generation_changes(&self, object: &Value, old: &Value) -> bool;

    /// Whether new objects get `metadata.generation: 1`.
    fn has_generation(&self) -> bool {
        true
    }

    /// Whether a PUT without resourceVersion is accepted.
    fn allow_unconditional_update(&self) -> bool {
        false
    }

    /// Whether a PUT of a missing object creates it.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether DELETE answers the object instead of a Status.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// The propagation policy of a DELETE that names none: `Background` or `Orphan`.
    fn default_propagation_policy(&self) -> &'static str {
        "Background"
    }

    /// The grace period of a DELETE in seconds, for kinds that end gracefully (Pods): `None` for all
    /// others. `asked` is what the client wrote.
    fn grace_period_seconds(&self, _object: &Value, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// Whether an object without finalizers that is being deleted may go (Namespaces wait for their
    /// `spec.finalizers`, too).
    fn may_be_removed(&self, _object: &Value) -> bool {
        true
    }
}

/// What is wrong with objects of the kind.
pub trait Validate: Send + Sync + fmt::Debug {
    /// All faults of a new object; `metadata` are those of its metadata, found by the server. Custom
    /// resources skip their rules if something blocks them, metadata included.
    fn create_faults(
        &self,
        resource: &Resource,
        object: &Value,
        metadata: Vec<FieldError>,
    ) -> Vec<FieldError>;

    /// What is wrong with a changed object; `metadata` are the faults of its metadata, found by the
    /// server.
    fn update_verdict(
        &self,
        resource: &Resource,
        subresource: &str,
        object: &Value,
        old: &Value,
        metadata: Vec<FieldError>,
    ) -> Verdict;

    /// Warnings about a new or changed object that was found valid.
    fn warnings(
        &self,
        _resource: &Resource,
        _subresource: &str,
        _object: &Value,
        _old: Option<&Value>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// What is wrong with a name (or with `generateName`, if `prefix`): a DNS subdomain unless the kind
    /// is stricter. The server reports the faults for `metadata.name`; strategies do not.
    fn name_faults(&self, name: &str, prefix: bool) -> Vec<String> {
        names::dns1123_subdomain(&names::masked(name, prefix))
    }

    /// API group that a refusal of an invalid object names: that of the type behind the resource.
    fn invalid_group<'a>(&'a self, resource: &'a Resource) -> &'a str {
        &resource.group
    }

    /// Whether finalizers must be the server's own or have a domain. Custom resources are only warned
    /// of.
    fn knows_finalizers(&self) -> bool {
        false
    }
}

/// What of the kind `fieldSelector` may name.
pub trait FieldLabels: Send + Sync + fmt::Debug {
    /// `fieldSelector` labels that the kind supports beside `metadata.name` and `metadata.namespace`,
    /// with the object's value (empty if unset). `None`: the label is not supported.
    fn field_label(&self, _resource: &Resource, _object: &Value, _label: &str) -> Option<String> {
        None
    }

    /// Whether the kind has field labels of its own: decides the wording of a refused one.
    fn has_field_labels(&self) -> bool {
        false
    }
}

/// How built-in kinds are shown in Tables; custom resources have the columns of their definition.
pub trait Show: Send + Sync + fmt::Debug {
    /// The cells of an object's row.
    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let created = object::meta_str(object, "creationTimestamp");
        vec![object::name(object).into(), created.into()]
    }

    /// The conditions of an object's row.
    fn row_conditions(&self, _object: &Value) -> Vec<Value> {
        Vec::new()
    }
}
