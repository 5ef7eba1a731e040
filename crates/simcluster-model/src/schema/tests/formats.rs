use crate::schema::formats::Format;
use crate::schema::go_regex;

#[test]
fn texts_of_each_format() {
    for (name, good, bad) in [
        ("date-time", "2024-02-29T23:59:59.1Z", "2024-02-30T00:00:00Z"),
        ("date", "2024-02-29", "2023-02-29"),
        ("duration", "1h30m", "soon"),
        ("duration", "22 seconds", ""),
        ("ipv4", "010.0.0.1", "1.2.3"),
        ("ipv6", "::1", "1.2.3.4"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("mac", "00:00:5e:00:53:01", "00:00"),
        ("uuid", "123E4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("uri", "https://example.com/a%20b", "example.com"),
        ("email", "a@example.com", "a@"),
        ("hostname", "a-b.example.com", "-a"),
        ("byte", "aGk=", "hi"),
        ("hexcolor", "#ffa", "#ff"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("k8s-short-name", "a-1", "a.b"),
        ("k8s-long-name", "a.b", "A"),
    ] {
        let format = Format::parse(name).unwrap();
        assert!(format.accepts(good), "{name} {good}");
        assert!(!format.accepts(bad), "{name} {bad}");
    }
    assert!(!Format::is_known("nope"));
}

#[test]
fn regular_expressions_of_go() {
    for (pattern, text, expected) in [
        (r"^\d+$", "12", true),
        (r"^\d+$", "١٢", false),
        (r"^[\w-]+$", "a_b-1", true),
        (r"^[[:alpha:]]+$", "ab", true),
        (r"^[a&&b]+$", "&", true),
        (r"^[]a]+$", "]a", true),
        (r"^\S+$", "a b", false),
    ] {
        assert_eq!(go_regex(pattern).unwrap().is_match(text), expected, "{pattern} {text}");
    }
    assert!(go_regex("[").is_err());
}
