use crate::http::accept::{Endpoint, Form, Format, negotiate, negotiate_error, router_accepts};
use crate::http::response::{is_for_humans, warning_headers};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                       application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[track_caller]
fn check(header: &str, endpoint: Endpoint, expected: Option<(Format, Form)>) {
    let found = negotiate(header, endpoint).map(|accepted| (accepted.format, accepted.form));
    assert_eq!(found, expected, "{header}");
}

#[test]
fn the_best_clause_that_can_be_answered_wins() {
    use Endpoint::Objects;
    let json = Some((Format::Json, Form::Plain));
    let yaml = Some((Format::Yaml, Form::Plain));
    check("", Objects, json);
    check("*/*", Objects, json);
    check("application/*", Objects, json);
    check("application/yaml", Objects, yaml);
    check("application/json;q=0.5, application/yaml;q=0.9", Objects, yaml);
    check("text/html, application/xhtml+xml, application/yaml", Objects, yaml);
    check("application/vnd.kubernetes.protobuf,application/json", Objects, json);
    check("*/*, application/yaml", Objects, yaml);
    check("application/xml", Objects, None);
    check("application/vnd.kubernetes.protobuf", Objects, None);
}

#[test]
fn forms_are_given_where_the_endpoint_has_them() {
    let table = Some((Format::Json, Form::Table("v1")));
    let json = Some((Format::Json, Form::Plain));
    check(KUBECTL, Endpoint::Objects, table);
    check(KUBECTL, Endpoint::ObjectsWithoutTable, json);
    check(KUBECTL, Endpoint::Plain, json);
    check(TABLE, Endpoint::ObjectsWithoutTable, None);
    check("application/json;as=Table;v=v9;g=meta.k8s.io", Endpoint::Objects, None);
    check("application/json;as=Nope;v=v1;g=meta.k8s.io", Endpoint::Objects, None);
    let list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    check(list, Endpoint::Objects, Some((Format::Json, Form::MetadataList("v1"))));
    let yaml = "application/yaml;as=Table;v=v1;g=meta.k8s.io";
    check(yaml, Endpoint::Objects, Some((Format::Yaml, Form::Table("v1"))));
}

#[test]
fn aggregated_discovery_wins_from_any_place() {
    let aggregated = Some((Format::Json, Form::Discovery));
    check(&format!("application/json, {DISCOVERY}"), Endpoint::Discovery, aggregated);
    check(DISCOVERY, Endpoint::Discovery, aggregated);
    check(DISCOVERY, Endpoint::Plain, None);
    let old = DISCOVERY.replace("v=v2", "v=v2beta1");
    check(&old, Endpoint::Discovery, None);
    check(
        &format!("{old},application/json"),
        Endpoint::Discovery,
        Some((Format::Json, Form::Plain)),
    );
}

#[test]
fn errors_are_json_unless_something_else_is_known() {
    assert_eq!(negotiate_error("application/xml").format, Format::Json);
    assert_eq!(negotiate_error(TABLE).format, Format::Json);
    assert_eq!(negotiate_error("application/yaml").format, Format::Yaml);
}

#[test]
fn the_router_of_built_in_kinds_looks_at_whole_media_types() {
    assert!(router_accepts(TABLE));
    assert!(router_accepts("text/html, */*;q=0.1"));
    assert!(!router_accepts("application/*"));
    assert!(!router_accepts("text/html"));
}

#[test]
fn humans_get_indented_json() {
    assert!(is_for_humans(None, "curl/8.0"));
    assert!(!is_for_humans(Some("false"), "curl/8.0"));
    assert!(is_for_humans(Some("1"), "kubectl/v1.37.2"));
    assert!(!is_for_humans(None, "kubectl/v1.37.2"));
}

#[test]
fn warnings_are_quoted_dropped_and_cut() {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let headers = warning_headers(&texts(&[r#"a "b" \c"#, "tab\there", ""]));
    assert_eq!(headers, [r#"299 - "a \"b\" \\c""#]);
    let long = "x".repeat(3000);
    let headers = warning_headers(&texts(&[&long, &format!("y{long}"), "short"]));
    let lengths: Vec<usize> = headers.iter().map(String::len).collect();
    assert_eq!(lengths, [264, 264, 13]);
}
