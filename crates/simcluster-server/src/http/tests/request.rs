use crate::http::request::{RequestInfo, parse};

/// A line such as `GET /api/v1/pods?watch=1`.
fn read(line: &str) -> RequestInfo {
    let (method, target) = line.split_once(' ').unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    parse(method, path, query)
}

/// `verb group/version namespace resource/subresource name`, `-` for what is empty.
fn summary(info: &RequestInfo) -> String {
    if !info.is_resource {
        return format!("{} {}", info.verb, info.path);
    }
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let resource = if info.subresource.is_empty() {
        info.resource.clone()
    } else {
        format!("{}/{}", info.resource, info.subresource)
    };
    let namespace = or_dash(&info.namespace);
    format!("{} {} {namespace} {resource} {}", info.verb, info.api_version(), or_dash(&info.name))
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(summary(&read(line)), expected, "{line}");
}

#[test]
fn resource_paths_are_split_as_the_server_splits_them() {
    check("GET /api/v1/namespaces/a/pods", "list v1 a pods -");
    check("GET /api/v1/pods", "list v1 - pods -");
    check("GET /api/v1/pods?watch=true", "watch v1 - pods -");
    check("GET /api/v1/pods?watch", "watch v1 - pods -");
    check("GET /api/v1/pods?watch=0", "list v1 - pods -");
    check("GET /api/v1/namespaces/a/pods/p?watch=1", "get v1 a pods p");
    check("HEAD /api/v1/namespaces/a/pods/p", "get v1 a pods p");
    check("POST /apis/apps/v1/namespaces/a/deployments", "create apps/v1 a deployments -");
    check("PUT /apis/e.com/v1/namespaces/a/ws/x/status", "update e.com/v1 a ws/status x");
    check("PATCH /apis/e.com/v1/ws/x/scale/more", "patch e.com/v1 - ws/scale x");
    check("DELETE /apis/e.com/v1/namespaces/a/ws", "deletecollection e.com/v1 a ws -");
    check("DELETE /apis/e.com/v1/namespaces/a/ws/x", "delete e.com/v1 a ws x");
    check("OPTIONS /apis/e.com/v1/namespaces/a/ws/x", " e.com/v1 a ws x");
}

#[test]
fn a_namespace_counts_as_in_itself() {
    check("GET /api/v1/namespaces", "list v1 - namespaces -");
    check("GET /api/v1/namespaces/a", "get v1 a namespaces a");
    check("PUT /api/v1/namespaces/a/finalize", "update v1 a namespaces/finalize a");
    check("GET /api/v1/namespaces/a/status", "get v1 a namespaces/status a");
}

#[test]
fn old_watch_paths_name_the_verb() {
    check("GET /api/v1/watch/namespaces/a/pods", "watch v1 a pods -");
    check("GET /apis/e.com/v1/watch/namespaces/a/ws/x", "watch e.com/v1 a ws x");
    check("GET /api/v1/watch/pods", "watch v1 - pods -");
}

#[test]
fn other_paths_have_no_resource() {
    check("GET /healthz", "get /healthz");
    check("POST /apis/apps/v1", "post /apis/apps/v1");
    check("GET /api/v1", "get /api/v1");
    check("GET /nope/a/b/c", "get /nope/a/b/c");
    check("GET /", "get /");
}

#[test]
fn queries_and_paths_are_decoded() {
    let info = read("GET /api/v1/namespaces/a/pods?labelSelector=a%3Db%2Cc&x=1+2&x=%zz&y");
    assert_eq!(info.param("labelSelector"), Some("a=b,c"));
    assert_eq!(info.param("x"), Some("1 2"));
    assert_eq!(info.query.get(2).unwrap().1, "%zz");
    assert_eq!(info.param("y"), Some(""));
    check("GET /api/v1/namespaces/a/pods/p%20q", "get v1 a pods p q");
}

#[test]
fn a_selected_name_counts_for_authorisation() {
    let info = read("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dp&watch=1");
    assert_eq!((info.name.as_str(), info.selected_name.as_str()), ("", "p"));
    let info = read("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name!%3Dp");
    assert_eq!(info.selected_name, "");
}
