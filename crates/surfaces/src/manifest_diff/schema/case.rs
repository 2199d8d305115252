//! What is known of the values that may occur: a conjunction of schemas, and facts read off it.
//!
//! A fact left out only makes the case larger, so whatever is not understood here is ignored.

use std::{cmp::Ordering, collections::BTreeSet, fmt, ptr};

use serde_json::{Map, Value};

/// How deep two cases are compared for a property that tells them apart.
const DISJOINT_DEPTH_MAX: usize = 2;
/// How many schemas one case is made of; those beyond are left out.
const PARTS_MAX: usize = 256;

/// A set of JSON types; a number is an integer or a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    const INTEGER: Self = Self(1 << 2);
    const FRACTION: Self = Self(1 << 3);
    const STRING: Self = Self(1 << 4);
    const ARRAY: Self = Self(1 << 5);
    const OBJECT: Self = Self(1 << 6);
    const NUMBER: Self = Self(Self::INTEGER.0 | Self::FRACTION.0);
    const ALL: Self = Self(0b111_1111);
    const NAMES: [(Self, &str); 8] = [
        (Self::NULL, "null"),
        (Self::BOOLEAN, "boolean"),
        (Self::NUMBER, "number"),
        (Self::INTEGER, "integer"),
        (Self::FRACTION, "fraction"),
        (Self::STRING, "string"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
    ];

    /// Reads the value of `type`.
    pub(super) fn named(value: &Value) -> Option<Self> {
        let one =
            |name: &str| Self::NAMES.iter().find(|(types, known)| *known == name && *types != Self::FRACTION);
        let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        names.iter().try_fold(Self(0), |all, name| Some(Self(all.0 | one(name.as_str()?)?.0.0)))
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() != 0.0) => {
                Self::FRACTION
            }
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// The types of value a keyword looks at.
    pub(super) fn governed_by(key: &str) -> Self {
        match key {
            "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" | "multipleOf" => Self::NUMBER,
            "minLength" | "maxLength" | "pattern" => Self::STRING,
            "prefixItems" | "items" | "minItems" | "maxItems" | "uniqueItems" | "contains" => Self::ARRAY,
            "properties"
            | "required"
            | "additionalProperties"
            | "patternProperties"
            | "propertyNames"
            | "minProperties"
            | "maxProperties"
            | "dependentRequired" => Self::OBJECT,
            _ => Self::ALL,
        }
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = *self;
        let mut names = Vec::new();
        for (types, name) in Self::NAMES {
            if types.without(left).is_empty() {
                names.push(name);
                left = left.without(types);
            }
        }
        f.write_str(&names.join(", "))
    }
}

/// What a case starts from: schemas that all hold, and the value itself where it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Seed<'a> {
    pub(super) schemas: Vec<&'a Value>,
    pub(super) value: Option<&'a Value>,
}

/// The values that all of `parts` accept, of `types` and, where they are listed, among `values`.
#[derive(Debug, Clone)]
pub(super) struct Case<'a> {
    root: &'a Value,
    pub(super) types: Types,
    pub(super) values: Option<Vec<&'a Value>>,
    pub(super) parts: Vec<&'a Value>,
    /// `anyOf` and `oneOf` not yet taken apart.
    choices: Vec<&'a [Value]>,
}

impl<'a> Case<'a> {
    pub(super) fn new(root: &'a Value, seed: &Seed<'a>) -> Self {
        let values = seed.value.map(|value| vec![value]);
        let mut case = Self { root, types: Types::ALL, values, parts: Vec::new(), choices: Vec::new() };
        seed.schemas.iter().for_each(|schema| case.narrow(schema));
        case.of_types(Types::ALL)
    }

    /// Adds a schema, with what it refers to. A part that is already there ends a loop of references.
    fn narrow(&mut self, schema: &'a Value) {
        if schema == &Value::Bool(false) {
            self.types = Types(0);
        }
        let embedded = schema.get("$id").is_some() && !ptr::eq(schema, self.root);
        let full = self.parts.len() >= PARTS_MAX;
        if !schema.is_object() || embedded || full || self.parts.iter().any(|part| ptr::eq(*part, schema)) {
            return;
        }
        self.parts.push(schema);
        if let Some(types) = schema.get("type").and_then(Types::named) {
            self.types.0 &= types.0;
        }
        let listed = schema.get("enum").and_then(Value::as_array).map(|values| values.iter().collect());
        for allowed in [listed, schema.get("const").map(|value| vec![value])].into_iter().flatten() {
            self.values = Some(match self.values.take() {
                Some(values) => values.into_iter().filter(|v| allowed.iter().any(|a| equal(a, v))).collect(),
                None => allowed,
            });
        }
        self.choices.extend(
            ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).map(Vec::as_slice),
        );
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && let Some((target, _)) = resolve(self.root, reference)
        {
            self.narrow(target);
        }
        schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .for_each(|branch| self.narrow(branch));
    }

    /// The same case with fewer types, and only the listed values of those types.
    fn of_types(mut self, types: Types) -> Self {
        self.types.0 &= types.0;
        if let Some(values) = &mut self.values {
            values.retain(|value| Types::of(value).meets(self.types));
            self.types = values.iter().fold(Types(0), |all, value| Types(all.0 | Types::of(value).0));
        }
        self
    }

    pub(super) fn with_value(&self, value: &'a Value) -> Self {
        Self { values: Some(vec![value]), ..self.clone() }.of_types(Types::ALL)
    }

    pub(super) fn by_type(&self) -> impl Iterator<Item = Self> {
        (0..7).map(|bit| self.clone().of_types(Types(1 << bit))).filter(|case| !case.is_empty())
    }

    /// One case for each alternative of the first choice left.
    pub(super) fn branches(&self) -> Option<Vec<Self>> {
        let (first, rest) = self.choices.split_first()?;
        let branch = |schema: &'a Value| {
            let mut case = Self { choices: rest.to_vec(), ..self.clone() };
            case.narrow(schema);
            case.of_types(Types::ALL)
        };
        Some(first.iter().map(branch).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The value, where there is only one.
    pub(super) fn known(&self) -> Option<&'a Value> {
        match self.values.as_deref() {
            Some([value]) => Some(value),
            _ => None,
        }
    }

    pub(super) fn facts(&self, key: &str) -> impl Iterator<Item = &'a Value> {
        self.parts.iter().filter_map(move |part| part.get(key))
    }

    /// Whether the case keeps to a limit of `sup`.
    pub(super) fn keeps(&self, key: &str, limit: &Value) -> bool {
        use Ordering::{Equal, Greater, Less};
        let has = |value: &Value, accepted: &[Ordering]| {
            compare(value, limit).is_some_and(|o| accepted.contains(&o))
        };
        let fact = |key: &str, accepted: &[Ordering]| self.facts(key).any(|value| has(value, accepted));
        let size = |size: usize, accepted: &[Ordering]| has(&Value::from(size), accepted);
        let known = |accepted: &[Ordering]| match self.known() {
            Some(value @ Value::Number(_)) => has(value, accepted),
            Some(Value::String(text)) => size(text.chars().count(), accepted),
            Some(Value::Array(items)) => size(items.len(), accepted),
            Some(Value::Object(map)) => size(map.len(), accepted),
            _ => false,
        };
        let (least, most) = (&[Greater, Equal], &[Less, Equal]);
        match key {
            "minimum" => fact("minimum", least) || fact("exclusiveMinimum", least) || known(least),
            "exclusiveMinimum" => fact("minimum", &[Greater]) || fact(key, least) || known(&[Greater]),
            "maximum" => fact("maximum", most) || fact("exclusiveMaximum", most) || known(most),
            "exclusiveMaximum" => fact("maximum", &[Less]) || fact(key, most) || known(&[Less]),
            "minLength" | "minItems" => fact(key, least) || known(least) || size(0, least),
            "minProperties" => fact(key, least) || known(least) || size(self.required().len(), least),
            "maxItems" => {
                fact(key, most) || known(most) || self.closed_lengths().any(|length| size(length, most))
            }
            _ => fact(key, most) || known(most),
        }
    }

    pub(super) fn is_multiple_of(&self, step: &Value) -> bool {
        let divides = |value: &Value| match (value.as_i64(), step.as_i64()) {
            (Some(value), Some(step)) => value.checked_rem(step) == Some(0),
            _ => false,
        };
        self.facts("multipleOf").any(|fact| divides(fact) || equal(fact, step))
            || self.known().is_some_and(divides)
            || (step.as_i64() == Some(1) && !self.types.meets(Types::FRACTION))
    }

    /// The lengths of tuples that allow no further item.
    fn closed_lengths(&self) -> impl Iterator<Item = usize> {
        let closed = self.parts.iter().filter(|part| part.get("items") == Some(&Value::Bool(false)));
        closed.map(|part| part.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len))
    }

    pub(super) fn is_unique(&self) -> bool {
        let distinct = |items: &Vec<Value>| {
            items
                .iter()
                .enumerate()
                .all(|(index, item)| !items[..index].iter().any(|other| equal(item, other)))
        };
        self.facts("uniqueItems").any(|fact| fact == &Value::Bool(true))
            || self.keeps("maxItems", &Value::from(1))
            || self.known().and_then(Value::as_array).is_some_and(distinct)
    }

    /// Whether an array of the case may have an item at `index`.
    pub(super) fn may_reach(&self, index: usize) -> bool {
        !self.keeps("maxItems", &Value::from(index))
    }

    pub(super) fn element(&self, index: usize) -> Seed<'a> {
        let schema = |part: &&'a Value| {
            let prefix = part.get("prefixItems").and_then(Value::as_array);
            prefix.and_then(|prefix| prefix.get(index)).or_else(|| part.get("items"))
        };
        let value = self.known().and_then(|value| value.get(index));
        Seed { schemas: self.parts.iter().filter_map(schema).collect(), value }
    }

    pub(super) fn prefix_length(&self) -> usize {
        self.facts("prefixItems").filter_map(Value::as_array).map(Vec::len).max().unwrap_or(0)
    }

    fn required(&self) -> BTreeSet<&'a str> {
        self.facts("required").flat_map(strings).collect()
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        self.facts("required").flat_map(strings).any(|required| required == name)
            || self.known().is_some_and(|value| value.get(name).is_some())
    }

    /// The names of the properties that are declared, or all there are when the value is known.
    pub(super) fn property_names(&self) -> Vec<&'a str> {
        let declared = || self.facts("properties").filter_map(Value::as_object).flat_map(Map::keys);
        let names: BTreeSet<_> = match self.known().and_then(Value::as_object) {
            Some(map) => map.keys().map(String::as_str).collect(),
            None => declared().map(String::as_str).collect(),
        };
        names.into_iter().collect()
    }

    /// What is known of a property; nothing when the value is known not to have it.
    pub(super) fn property(&self, name: &str) -> Option<Seed<'a>> {
        let value = match self.known() {
            Some(known) => Some(known.get(name)?),
            None => None,
        };
        let schema = |part: &&'a Value| {
            let declared = part.get("properties").and_then(|properties| properties.get(name));
            declared.or_else(|| additional(part, |_| false))
        };
        Some(Seed { schemas: self.parts.iter().filter_map(schema).collect(), value })
    }

    /// What is known of properties that are not declared and match none of `patterns`.
    pub(super) fn undeclared(&self, patterns: Option<&Map<String, Value>>) -> Seed<'a> {
        let excluded = |pattern: &str| patterns.is_some_and(|patterns| patterns.contains_key(pattern));
        let schemas = self.parts.iter().filter_map(|part| additional(part, excluded)).collect();
        Seed { schemas, value: None }
    }

    /// What is known of properties that match this very pattern.
    pub(super) fn pattern(&self, pattern: &str) -> Seed<'a> {
        Seed {
            schemas: self.facts("patternProperties").filter_map(|map| map.get(pattern)).collect(),
            value: None,
        }
    }

    /// The names that properties of the case may have.
    pub(super) fn names(&self) -> Self {
        let seed = Seed { schemas: self.facts("propertyNames").collect(), value: None };
        Self::new(self.root, &seed).of_types(Types::STRING)
    }
}

/// `additionalProperties`, if every pattern beside it is `excluded`; which names the others match is not known.
fn additional(part: &Value, excluded: impl Fn(&str) -> bool) -> Option<&Value> {
    let patterns = part.get("patternProperties").and_then(Value::as_object);
    let open = patterns.is_none_or(|patterns| patterns.keys().all(|pattern| excluded(pattern)));
    if open { part.get("additionalProperties") } else { None }
}

/// Whether no value is in both: by type, by listed value, or by a property that one of them requires.
pub(super) fn disjoint(one: &Case<'_>, other: &Case<'_>, depth: usize) -> bool {
    let common = Types(one.types.0 & other.types.0);
    if common.is_empty() {
        return true;
    }
    if let (Some(values), Some(others)) = (&one.values, &other.values)
        && !values.iter().any(|value| others.iter().any(|other| equal(value, other)))
    {
        return true;
    }
    let names = one.required().into_iter().chain(other.required()).collect::<BTreeSet<_>>();
    let mut apart = names.iter().map(|name| match (one.property(name), other.property(name)) {
        (Some(left), Some(right)) => {
            disjoint(&Case::new(one.root, &left), &Case::new(other.root, &right), depth + 1)
        }
        _ => true,
    });
    common == Types::OBJECT && depth < DISJOINT_DEPTH_MAX && apart.any(|apart| apart)
}

/// The values beyond a limit, in words.
pub(super) fn beyond(key: &str, wanted: &Value) -> String {
    match key {
        "minimum" => format!("numbers below {wanted}"),
        "exclusiveMinimum" => format!("numbers of at most {wanted}"),
        "maximum" => format!("numbers above {wanted}"),
        "exclusiveMaximum" => format!("numbers of at least {wanted}"),
        "minLength" => format!("strings shorter than {wanted} characters"),
        "maxLength" => format!("strings longer than {wanted} characters"),
        "minItems" => format!("arrays with fewer than {wanted} items"),
        "maxItems" => format!("arrays with more than {wanted} items"),
        "minProperties" => format!("objects with fewer than {wanted} properties"),
        _ => format!("objects with more than {wanted} properties"),
    }
}

/// Keywords that say nothing about which values are accepted.
pub(super) fn is_annotation(key: &str) -> bool {
    key.starts_with("x-")
        || matches!(
            key,
            "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
        )
        || matches!(
            key,
            "$comment" | "$schema" | "$id" | "$anchor" | "$dynamicAnchor" | "$defs" | "definitions"
        )
}

/// The target of a reference within the document, and its JSON pointer.
pub(super) fn resolve<'a, 'r>(root: &'a Value, reference: &'r str) -> Option<(&'a Value, &'r str)> {
    let pointer = reference.strip_prefix('#').filter(|pointer| !pointer.contains('%'))?;
    let embedded = |end: usize| root.pointer(&pointer[..end])?.get("$id")?.as_str();
    if pointer.match_indices('/').skip(1).any(|(end, _)| embedded(end).is_some()) {
        return None;
    }
    Some((root.pointer(pointer)?, pointer))
}

pub(super) fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// JSON Schema's equality: `1` is `1.0`.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => compare(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

/// Compares numbers exactly, whether they are written as integers or not.
pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    let (float, other_float) = (one.as_f64()?, other.as_f64()?);
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => float.partial_cmp(&other_float),
    }
}

fn integer(value: &Value) -> Option<i128> {
    let exact = |float: f64| (float.fract() == 0.0 && float.abs() < 1e38).then_some(float as i128);
    value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)).or(value.as_f64().and_then(exact))
}

/// Whether this is the format of one of Rust's own number types: it asserts nothing, the bounds beside it do.
pub(super) fn is_number_format(format: &Value) -> bool {
    const FORMATS: [&str; 14] = [
        "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128",
        "uint", "float", "double",
    ];
    format.as_str().is_some_and(|name| FORMATS.contains(&name))
}
