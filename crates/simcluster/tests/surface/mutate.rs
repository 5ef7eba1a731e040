//! Small harm to values, texts and bytes.

use serde_json::{Value, json};
use simcluster_model::random::Random;

/// Chance that a test can use.
#[derive(Debug)]
pub(crate) struct Dice(Random);

impl Dice {
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Self(Random::stream(seed, name))
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap();
        usize::try_from(self.0.next_u64() % limit).unwrap()
    }

    /// Whether something happens that does so this often in a hundred times.
    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    pub(crate) fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }
}

/// Texts that mean something to somebody, or should not.
pub(crate) const TEXTS: [&str; 44] = [
    "", "a", "default", "x", "-1", "0", "1", "true", "None", "null", "9223372036854775807",
    "-9223372036854775808", "18446744073709551616", "1e999", "99999999999999999999999999999999",
    "1Ei", "10000000000000000000000000E", "0.000000000000000000000000001m", "100%", "1001%", "-5%",
    "10.0.0.1", "::1", "10.0.0.0/8", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z",
    "-009999-01-01T00:00:00Z", "0000-00-00T00:00:00Z", "9999999999h", "a=b,c!=d", "a in (b,c),!d",
    "a in ((((", "metadata.name=x", "{.spec['a'].b[0]..c}", "[[[[[[[[[[[[", "(a|b*)*c{1000}{1000}",
    "self.all(x, x.all(y, y > 0)) && has(self.a)", "é\u{0}\u{202e}😀\u{feff}", "a\nb\tc\r", "%", "~0~1",
    "../..", "kubectl.kubernetes.io/last-applied-configuration", "\"",
];

/// Numbers at their ends.
pub(crate) const NUMBERS: [&str; 8] = [
    "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "4294967296",
    "0x10",
];

/// Names of fields that change how a value is read.
const KEYS: [&str; 20] = [
    "$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers",
    "metadata", "spec", "status", "name", "namespace", "kind", "apiVersion", "finalizers",
    "managedFields", "fieldsV1", "f:metadata", "k:{\"name\":\"a\"}", "op", "path", "", "é.\u{0}",
];

/// A value that was not asked for.
pub(crate) fn strange(dice: &mut Dice) -> Value {
    match dice.below(22) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(i64::MAX),
        5 => json!(i64::MIN),
        6 => json!(u64::MAX),
        7 => json!(1e308),
        8 => json!(-0.5),
        9 => json!(i32::MAX),
        10 => json!([]),
        11 => json!({}),
        12 => nested(dice.below(130)),
        13 => json!("x".repeat(dice.below(70_000))),
        14 => json!([{}, {}, null, 1, "a"]),
        15 => json!({ dice.pick(&KEYS): dice.pick(&TEXTS) }),
        16 => json!(vec!["a"; dice.below(5_000)]),
        _ => json!(dice.pick(&TEXTS)),
    }
}

/// Lists and objects within each other.
pub(crate) fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("x"), |inner, level| match level % 2 {
        0 => json!([inner]),
        _ => json!({ "a": inner }),
    })
}

/// Harms a value at one place.
pub(crate) fn value(dice: &mut Dice, target: &mut Value) {
    let descend = dice.percent(85);
    match target {
        Value::Object(map) if descend && !map.is_empty() => {
            let key = map.keys().nth(dice.below(map.len())).unwrap().clone();
            match dice.below(10) {
                0 => drop(map.remove(&key)),
                1 => drop(map.insert(dice.pick(&KEYS).to_owned(), strange(dice))),
                _ => value(dice, map.get_mut(&key).unwrap()),
            }
        }
        Value::Array(list) if descend && !list.is_empty() => {
            let index = dice.below(list.len());
            match dice.below(8) {
                0 => drop(list.remove(index)),
                1 => list.push(list[index].clone()),
                2 => list.insert(index, strange(dice)),
                _ => value(dice, &mut list[index]),
            }
        }
        _ => *target = strange(dice),
    }
}

/// Harms bytes at one place.
pub(crate) fn bytes(dice: &mut Dice, target: &mut Vec<u8>) {
    let at = dice.below(target.len());
    match dice.below(7) {
        0 => target.truncate(at),
        1 if !target.is_empty() => target[at] = dice.byte(),
        2 => target.insert(at, dice.byte()),
        3 => {
            let piece = target[at..].iter().take(40).copied().collect::<Vec<u8>>();
            for _ in 0..dice.below(3_000) {
                target.extend_from_slice(&piece);
            }
        }
        4 => {
            let byte = *dice.pick(&[&b'[', &b'{', &b'"', &b'-', &b' ', &0xff]);
            target.splice(at..at, std::iter::repeat_n(byte, dice.below(20_000)));
        }
        5 => *target = (0..dice.below(200)).map(|_| dice.byte()).collect(),
        _ => {
            let text = dice.pick(&TEXTS).as_bytes();
            target.splice(at..at, text.iter().copied());
        }
    }
}

/// A protobuf message of any fields.
pub(crate) fn message(dice: &mut Dice, depth: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..dice.below(6) {
        let number = u8::try_from(1 + dice.below(15)).unwrap();
        match dice.below(6) {
            0 => {
                out.push(number << 3);
                out.extend((0..dice.below(10)).map(|_| dice.byte() | 0x80));
                out.push(dice.byte() & 0x7f);
            }
            1 => {
                out.push(number << 3 | 1);
                out.extend((0..8).map(|_| dice.byte()));
            }
            kind => {
                let inner = if kind < 4 && depth > 0 {
                    message(dice, depth - 1)
                } else {
                    dice.pick(&TEXTS).as_bytes().to_vec()
                };
                out.push(number << 3 | 2);
                varint(&mut out, inner.len());
                out.extend(inner);
            }
        }
    }
    out
}

/// A protobuf body of an object.
pub(crate) fn protobuf(dice: &mut Dice, api_version: &str, kind: &str) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| {
        let mut out = vec![number << 3 | 2];
        varint(&mut out, content.len());
        out.extend_from_slice(content);
        out
    };
    let names = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    let metadata = field(1, &[field(1, b"p"), message(dice, 2)].concat());
    let object = [metadata, message(dice, 5)].concat();
    [b"k8s\0".to_vec(), field(1, &names), field(2, &object)].concat()
}

fn varint(out: &mut Vec<u8>, mut number: usize) {
    loop {
        let byte = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        out.push(if number == 0 { byte } else { byte | 0x80 });
        if number == 0 {
            return;
        }
    }
}
