//! Whether every value one JSON Schema accepts is accepted by another too.
//!
//! Conservative: no reason means it is shown, anything that cannot be shown is a reason. The smaller side is held as
//! a [`Case`], a conjunction of schemas (siblings, `allOf`, `$ref`); its alternatives are taken one at a time, and each
//! keyword of the larger side asks the case for a fact that implies it. Recursive schemas are shown by assuming the
//! pair at hand while looking at its members, which are smaller values.
//!
//! It evaluates no regular expression and no `format`, fetches no reference, and reads the 2020-12 dialect only.

use std::{collections::HashSet, ptr};

use serde_json::{Map, Value};

mod case;

use case::{Case, Seed, Types, beyond, disjoint, equal, is_annotation, is_number_format, resolve, strings};

/// How many schemas may nest, references followed included.
const DEPTH_MAX: usize = 64;
/// How many pairs are looked at in one check.
const STEPS_MAX: usize = 20_000;
/// How many different references are followed to see whether two schemas are the same.
const REFERENCES_MAX: usize = 256;
/// How many reasons one check returns.
const REASONS_MAX: usize = 50;

/// A value the first schema may accept and the second does not, or does not provably.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// A JSON pointer into the second schema.
    pub path: String,
    /// The values in question ("objects without `title`"), or why nothing is known about them.
    pub message: String,
    /// Whether the values are known to be refused.
    pub finding: Finding,
}

/// How sure a [`Reason`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The second schema narrows what the first one accepts.
    Narrower,
    /// It cannot be shown either way.
    Unknown,
}

impl Reason {
    fn narrower(path: &str, values: impl Into<String>) -> Vec<Self> {
        vec![Self { path: path.to_owned(), message: values.into(), finding: Finding::Narrower }]
    }

    fn unknown(path: &str, why: impl Into<String>) -> Vec<Self> {
        vec![Self { path: path.to_owned(), message: why.into(), finding: Finding::Unknown }]
    }
}

/// Why `sup` may refuse a value that `sub` accepts; empty when it is shown that it refuses none.
pub fn accepts_all(sub: &Value, sup: &Value) -> Vec<Reason> {
    if sub == sup {
        return Vec::new();
    }
    let foreign = |root: &Value| {
        root.get("$schema")
            .is_some_and(|dialect| dialect.as_str().is_none_or(|uri| !uri.contains("/2020-12/")))
    };
    if foreign(sub) || foreign(sup) {
        return Reason::unknown("/$schema", "only the 2020-12 dialect is compared");
    }
    let mut check =
        Check { sub_root: sub, sup_root: sup, shown: HashSet::new(), log: Vec::new(), depth: 0, steps: 0 };
    let mut seen = HashSet::new();
    let mut reasons = check.member(Seed { schemas: vec![sub], value: None }, sup, "");
    reasons.retain(|reason| seen.insert((reason.path.clone(), reason.message.clone())));
    reasons.truncate(REASONS_MAX);
    reasons
}

/// A member's schemas, its value where known, and the schema they are held against.
type Pair = (Vec<*const Value>, Option<*const Value>, *const Value);

/// A schema's keywords.
type Keywords = Map<String, Value>;

struct Check<'a> {
    sub_root: &'a Value,
    sup_root: &'a Value,
    /// Pairs shown, or assumed while they are being shown.
    shown: HashSet<Pair>,
    /// The same pairs in order: when one fails, what was shown since may rest on it and goes too.
    log: Vec<Pair>,
    depth: usize,
    steps: usize,
}

impl<'a> Check<'a> {
    /// Shows a pair one level deeper in the value; the only place where a pair is assumed.
    fn member(&mut self, seed: Seed<'a>, sup: &'a Value, path: &str) -> Vec<Reason> {
        let mut schemas: Vec<_> = seed.schemas.iter().map(|schema| ptr::from_ref(*schema)).collect();
        schemas.sort_unstable();
        let pair = (schemas, seed.value.map(ptr::from_ref), ptr::from_ref(sup));
        if !self.shown.insert(pair.clone()) {
            return Vec::new();
        }
        let mark = self.log.len();
        self.log.push(pair);
        let reasons = self.within(&Case::new(self.sub_root, &seed), sup, path);
        if !reasons.is_empty() {
            for pair in self.log.drain(mark..) {
                self.shown.remove(&pair);
            }
        }
        reasons
    }

    /// Shows that every value of the case is accepted by `sup`.
    fn within(&mut self, case: &Case<'a>, sup: &'a Value, path: &str) -> Vec<Reason> {
        self.steps += 1;
        if self.steps > STEPS_MAX || self.depth >= DEPTH_MAX {
            return Reason::unknown(path, "the schema is too deep or too large");
        }
        if sup.get("$id").is_some() && !ptr::eq(sup, self.sup_root) {
            return Reason::unknown(path, "an embedded `$id` is not followed");
        }
        self.depth += 1;
        let reasons = self.unfold(case, sup, path);
        self.depth -= 1;
        reasons
    }

    /// Takes the alternatives of the case one at a time, then its listed values.
    fn unfold(&mut self, case: &Case<'a>, sup: &'a Value, path: &str) -> Vec<Reason> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Reason::unknown(path, "the schema is too deep or too large");
        }
        if case.is_empty() || sup == &Value::Bool(true) || case.parts.iter().any(|part| self.same(part, sup))
        {
            return Vec::new();
        }
        if let Some(branches) = case.branches() {
            return branches.iter().flat_map(|branch| self.unfold(branch, sup, path)).collect();
        }
        let Some(keywords) = sup.as_object() else {
            return Reason::narrower(path, "any value");
        };
        let Some(values) = &case.values else {
            return self.keywords(case, keywords, path);
        };
        let mut reasons = Vec::new();
        for value in values {
            let found = self.keywords(&case.with_value(value), keywords, path);
            let refused = found.iter().any(|reason| reason.finding == Finding::Narrower);
            reasons.extend(if refused {
                Reason::narrower(path, format!("the value {value}"))
            } else {
                found
            });
        }
        reasons
    }

    fn keywords(&mut self, case: &Case<'a>, sup: &'a Keywords, path: &str) -> Vec<Reason> {
        let keywords = sup.iter().filter(|(key, _)| case.types.meets(Types::governed_by(key)));
        keywords.flat_map(|(key, wanted)| self.keyword(case, sup, key, wanted, path)).collect()
    }

    fn keyword(
        &mut self,
        case: &Case<'a>,
        sup: &'a Keywords,
        key: &str,
        wanted: &'a Value,
        path: &str,
    ) -> Vec<Reason> {
        let at = &format!("{path}/{}", escape(key));
        match key {
            _ if is_annotation(key) => Vec::new(),
            "type" => types(case, wanted, at),
            "enum" => listed(case, wanted.as_array().map_or(&[], Vec::as_slice), at),
            "const" => listed(case, std::slice::from_ref(wanted), at),
            "$ref" => match wanted.as_str().and_then(|reference| resolve(self.sup_root, reference)) {
                Some((target, pointer)) => self.within(case, target, pointer),
                None => Reason::unknown(at, format!("the reference {wanted} is not followed")),
            },
            "allOf" => indexed(wanted)
                .flat_map(|(index, branch)| self.within(case, branch, &format!("{at}/{index}")))
                .collect(),
            "anyOf" | "oneOf" => self.alternatives(case, key, wanted, at),
            "not" if disjoint(case, &self.sup_case(wanted), 0) => Vec::new(),
            "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" | "minLength" | "maxLength"
            | "minItems" | "maxItems" | "minProperties" | "maxProperties" => limit(case, key, wanted, at),
            "multipleOf" if case.is_multiple_of(wanted) => Vec::new(),
            "multipleOf" => Reason::narrower(at, format!("numbers that are no multiple of {wanted}")),
            "format" if is_number_format(wanted) => Vec::new(),
            "pattern" | "format" => self.text(case, key, wanted, at),
            "uniqueItems" if wanted == &Value::Bool(false) || case.is_unique() => Vec::new(),
            "uniqueItems" => Reason::narrower(at, "arrays with an item twice"),
            "prefixItems" => indexed(wanted)
                .filter(|(index, _)| case.may_reach(*index))
                .flat_map(|(index, schema)| {
                    self.member(case.element(index), schema, &format!("{at}/{index}"))
                })
                .collect(),
            "items" => self.items(case, sup, wanted, at),
            "required" => strings(wanted)
                .filter(|name| !case.requires(name))
                .flat_map(|name| Reason::narrower(at, format!("objects without `{name}`")))
                .collect(),
            "properties" => self.properties(case, wanted, at),
            "patternProperties" => self.patterns(case, wanted, at),
            "additionalProperties" => self.additional(case, sup, wanted, at),
            "propertyNames" => self.within(&case.names(), wanted, at),
            "contains" => self.together(case, sup, &["contains", "minContains", "maxContains"], at),
            "if" => self.together(case, sup, &["if", "then", "else"], at),
            // They mean nothing without the keyword above that they belong to.
            "minContains" | "maxContains" | "then" | "else" => Vec::new(),
            // What these refuse depends on everything beside them, so an equal value shows nothing.
            "unevaluatedProperties" | "unevaluatedItems" | "$dynamicRef" | "$recursiveRef" => {
                Reason::unknown(at, format!("`{key}` is not compared"))
            }
            _ => self.together(case, sup, &[key], at),
        }
    }

    /// Shows `anyOf` or `oneOf`: each type of the case fits one branch, and for `oneOf` no other.
    fn alternatives(&mut self, case: &Case<'a>, key: &str, wanted: &'a Value, at: &str) -> Vec<Reason> {
        if case.facts(key).any(|fact| self.same(fact, wanted)) {
            return Vec::new();
        }
        let mut reasons = Vec::new();
        // A piece that has nothing in common with itself holds no value.
        for piece in case.by_type().filter(|piece| !disjoint(piece, piece, 0)) {
            let near: Vec<_> =
                indexed(wanted).filter(|(_, branch)| !disjoint(&piece, &self.sup_case(branch), 0)).collect();
            if near.is_empty() {
                reasons.extend(Reason::narrower(at, format!("values of type {}", piece.types)));
                continue;
            }
            let mut misses: Vec<_> = near
                .iter()
                .map(|(index, branch)| self.within(&piece, branch, &format!("{at}/{index}")))
                .collect();
            if !misses.iter().any(Vec::is_empty) {
                reasons.extend(match misses.len() {
                    1 => misses.remove(0),
                    _ => {
                        Reason::unknown(at, format!("values of type {} fit no one alternative", piece.types))
                    }
                });
            } else if key == "oneOf" && near.len() > 1 {
                let why = format!("values of type {} may fit more than one alternative", piece.types);
                reasons.extend(Reason::unknown(at, why));
            }
        }
        reasons
    }

    fn text(&mut self, case: &Case<'a>, key: &str, wanted: &Value, at: &str) -> Vec<Reason> {
        if case.facts(key).any(|fact| fact == wanted) {
            return Vec::new();
        }
        if case.facts(key).next().is_some() || case.known().is_some() {
            return Reason::unknown(at, format!("`{key}` {wanted} is not evaluated"));
        }
        Reason::narrower(at, format!("values that do not match the {key} {wanted}"))
    }

    fn items(&mut self, case: &Case<'a>, sup: &'a Keywords, wanted: &'a Value, at: &str) -> Vec<Reason> {
        if wanted.is_array() {
            return Reason::unknown(at, "an array of `items` is not of the 2020-12 dialect");
        }
        let start = sup.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        let end = case.known().and_then(Value::as_array).map_or(case.prefix_length() + 1, Vec::len);
        (start..end.max(start + 1))
            .filter(|index| case.may_reach(*index))
            .flat_map(|index| self.member(case.element(index), wanted, at))
            .collect()
    }

    fn properties(&mut self, case: &Case<'a>, wanted: &'a Value, at: &str) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for (name, schema) in wanted.as_object().into_iter().flatten() {
            let Some(seed) = case.property(name) else { continue };
            let at = &format!("{at}/{}", escape(name));
            let undeclared = seed.schemas.is_empty() && seed.value.is_none();
            let found = self.member(seed, schema, at);
            reasons.extend(match undeclared && !found.is_empty() {
                true => Reason::narrower(at, format!("any value as the undeclared property `{name}`")),
                false => found,
            });
        }
        reasons
    }

    fn patterns(&mut self, case: &Case<'a>, wanted: &'a Value, at: &str) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for (pattern, schema) in wanted.as_object().into_iter().flatten() {
            let at = &format!("{at}/{}", escape(pattern));
            let seed = case.pattern(pattern);
            reasons.extend(match seed.schemas.is_empty() && schema != &Value::Bool(true) {
                true => Reason::unknown(at, format!("properties that match `{pattern}`")),
                false => self.member(seed, schema, at),
            });
        }
        reasons
    }

    fn additional(&mut self, case: &Case<'a>, sup: &'a Keywords, wanted: &'a Value, at: &str) -> Vec<Reason> {
        let declared = |key: &str| sup.get(key).and_then(Value::as_object);
        let mut reasons = Vec::new();
        for name in case.property_names() {
            if declared("properties").is_some_and(|properties| properties.contains_key(name)) {
                continue;
            }
            let Some(seed) = case.property(name) else { continue };
            let found = self.member(seed, wanted, at);
            reasons.extend(found.into_iter().map(|reason| Reason {
                message: match wanted == &Value::Bool(false) {
                    true => format!("the property `{name}`"),
                    false => format!("in the property `{name}`: {}", reason.message),
                },
                ..reason
            }));
        }
        if case.known().is_none() {
            let found = self.member(case.undeclared(declared("patternProperties")), wanted, at);
            reasons.extend(match wanted == &Value::Bool(false) && !found.is_empty() {
                true => Reason::narrower(at, "undeclared properties"),
                false => found,
            });
        }
        reasons
    }

    /// Shows keywords that only mean something together: one schema of the case has them all the same.
    fn together(&mut self, case: &Case<'a>, sup: &'a Keywords, keys: &[&str], at: &str) -> Vec<Reason> {
        let same = |part: &&Value| {
            keys.iter().all(|key| match (part.get(*key), sup.get(*key)) {
                (Some(fact), Some(wanted)) => self.same(fact, wanted),
                (fact, wanted) => fact.is_none() && wanted.is_none(),
            })
        };
        match case.parts.iter().any(same) {
            true => Vec::new(),
            false => Reason::unknown(at, format!("`{}` differs", keys.join("`, `"))),
        }
    }

    fn sup_case(&self, schema: &'a Value) -> Case<'a> {
        Case::new(self.sup_root, &Seed { schemas: vec![schema], value: None })
    }

    /// Whether two schemas read the same and so does everything they refer to, each in its own document.
    fn same(&self, sub: &Value, sup: &Value) -> bool {
        sub == sup && self.references_agree(sup, &mut HashSet::new())
    }

    fn references_agree<'v>(&self, value: &'v Value, seen: &mut HashSet<&'v str>) -> bool
    where
        'a: 'v,
    {
        match value {
            Value::Array(items) => items.iter().all(|item| self.references_agree(item, seen)),
            Value::Object(map) => map.iter().all(|(key, value)| match (key.as_str(), value.as_str()) {
                ("$dynamicRef" | "$recursiveRef", _) => false,
                ("$ref", Some(reference)) if seen.insert(reference) => {
                    if seen.len() > REFERENCES_MAX {
                        return false;
                    }
                    match (resolve(self.sub_root, reference), resolve(self.sup_root, reference)) {
                        (Some((sub, _)), Some((sup, _))) => sub == sup && self.references_agree(sup, seen),
                        _ => false,
                    }
                }
                _ => self.references_agree(value, seen),
            }),
            _ => true,
        }
    }
}

fn types(case: &Case<'_>, wanted: &Value, at: &str) -> Vec<Reason> {
    match Types::named(wanted) {
        Some(allowed) if case.types.without(allowed).is_empty() => Vec::new(),
        Some(allowed) => Reason::narrower(at, format!("values of type {}", case.types.without(allowed))),
        None => Reason::unknown(at, "an unknown type"),
    }
}

fn listed(case: &Case<'_>, wanted: &[Value], at: &str) -> Vec<Reason> {
    let has = |value: &Value| wanted.iter().any(|one| equal(one, value));
    if let Some(value) = case.known() {
        return if has(value) { Vec::new() } else { Reason::narrower(at, format!("the value {value}")) };
    }
    let mut left = case.types;
    if has(&Value::Null) {
        left = left.without(Types::NULL);
    }
    if has(&Value::Bool(true)) && has(&Value::Bool(false)) {
        left = left.without(Types::BOOLEAN);
    }
    if left.is_empty() { Vec::new() } else { Reason::narrower(at, "values that are not listed") }
}

fn limit(case: &Case<'_>, key: &str, wanted: &Value, at: &str) -> Vec<Reason> {
    if !wanted.is_number() {
        return Reason::unknown(at, format!("`{key}` is not a number"));
    }
    if case.keeps(key, wanted) {
        return Vec::new();
    }
    Reason::narrower(at, beyond(key, wanted))
}

fn indexed(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One schema, another, and how they relate: `<` when only the first is within the second, `=` when each is within
    /// the other, `!` when neither is.
    #[track_caller]
    fn check(one: Value, other: Value, relation: &str) {
        let within = |sub, sup| accepts_all(sub, sup).is_empty();
        let found = match (within(&one, &other), within(&other, &one)) {
            (true, true) => "=",
            (true, false) => "<",
            (false, true) => ">",
            (false, false) => "!",
        };
        assert_eq!(found, relation, "{one} against {other}");
    }

    macro_rules! table {
        ($($one:tt $relation:literal $other:tt)*) => { $(check(json!($one), json!($other), $relation);)* };
    }

    #[test]
    fn types_and_listed_values_are_sets() {
        table! {
            false "<" true
            true "=" {}
            {"type": "string"} "<" true
            {"type": "integer"} "<" {"type": "number"}
            {"type": "string"} "<" {"type": ["string", "null"]}
            {"type": ["null", "string"]} "=" {"anyOf": [{"type": "string"}, {"type": "null"}]}
            {"type": "string"} "!" {"type": "integer"}
            {"enum": ["a"]} "<" {"enum": ["a", "b"]}
            {"enum": ["a", "b"]} "<" {"type": "string"}
            {"enum": ["a", 1], "type": "string"} "=" {"const": "a"}
            {"const": 1} "=" {"const": 1.0}
            {"const": 1.0} "<" {"type": "integer"}
            {"const": 5} "<" {"type": "integer", "minimum": 3, "multipleOf": 5}
            {"const": {"a": [1]}}
                "<" {"properties": {"a": {"items": {"minimum": 1}}}, "required": ["a"], "additionalProperties": false}
            {"type": "boolean"} "=" {"enum": [true, false]}
            {"type": "null"} "=" {"const": null}
        }
    }

    #[test]
    fn numbers_and_strings_keep_to_their_limits() {
        table! {
            {"minimum": 2} "<" {"minimum": 1}
            {"exclusiveMinimum": 1} "<" {"minimum": 1}
            {"minimum": 1.5} "<" {"exclusiveMinimum": 1}
            {"maximum": 1} "<" {"maximum": 2}
            {"exclusiveMaximum": 2} "<" {"maximum": 2}
            {"maximum": 9007199254740992u64} "<" {"maximum": 9007199254740993u64}
            {"multipleOf": 6} "<" {"multipleOf": 3}
            {"type": "integer"} "<" {"type": "number", "multipleOf": 1}
            {"type": "string"} "=" {"type": "string", "minimum": 3}
            {"minLength": 2} "<" {"minLength": 1}
            {"minLength": 0} "=" {}
            {"maxLength": 2} "<" {"maxLength": 3}
            {"pattern": "^a"} "!" {"pattern": "^ab"}
            {"type": "string", "format": "email"} "<" {"type": "string"}
            {"format": "email"} "!" {"format": "date"}
            {"format": "uint32", "maximum": 9} "<" {"format": "uint64", "maximum": 10}
        }
    }

    #[test]
    fn objects_and_arrays_are_compared_member_by_member() {
        table! {
            {"required": ["a", "b"]} "<" {"required": ["a"]}
            {"properties": {"a": {"type": "integer"}}} "<" {"properties": {"a": {"type": "number"}}}
            {"properties": {"a": {"type": "string"}}} "<" {}
            {"properties": {"a": {"default": 1}}} "=" {"properties": {"a": true}}
            {"properties": {"a": {"default": 1}}, "required": ["a"]} "<" {"properties": {"a": {"default": 1}}}
            {"additionalProperties": false} "<" {"additionalProperties": {"type": "string"}}
            {"additionalProperties": {"type": "string"}} "<" {}
            {"properties": {"a": true}, "additionalProperties": false}
                "<" {"properties": {"a": true, "b": {"type": "string"}}, "additionalProperties": false}
            {"additionalProperties": {"type": "string"}}
                "<" {"properties": {"a": {"type": ["string", "null"]}}, "additionalProperties": {"type": "string"}}
            {"patternProperties": {"^x": {"type": "integer"}}}
                "<" {"patternProperties": {"^x": {"type": "number"}}}
            {"patternProperties": {"^x": true}, "additionalProperties": false}
                "!" {"patternProperties": {"^y": {"type": "null"}}}
            {"propertyNames": {"maxLength": 2}} "<" {"propertyNames": {"maxLength": 3}}
            {"minProperties": 2} "<" {"minProperties": 1}
            {"required": ["a"]} "<" {"minProperties": 1}
            {"maxProperties": 1} "<" {"maxProperties": 2}
            {"items": {"type": "integer"}} "<" {"items": {"type": "number"}}
            {"prefixItems": [{"type": "string"}]} "<" {"prefixItems": [true]}
            {"prefixItems": [{"const": 1}], "items": {"const": 2}} "<" {"items": {"type": "integer"}}
            {"prefixItems": [true, true], "items": false} "=" {"maxItems": 2}
            {"items": {"const": 1}} "<" {"prefixItems": [{"const": 1}]}
            {"minItems": 2} "<" {"minItems": 1}
            {"maxItems": 1} "<" {"uniqueItems": true}
            {"uniqueItems": true} "<" {"uniqueItems": false}
        }
    }

    #[test]
    fn alternatives_conjunctions_and_references_are_followed() {
        table! {
            {"anyOf": [{"type": "string"}]} "<" {"anyOf": [{"type": "string"}, {"type": "null"}]}
            {"oneOf": [{"const": "a"}, {"const": "b"}]} "=" {"enum": ["a", "b"]}
            {"oneOf": [{"const": "a"}]} "<" {"oneOf": [{"const": "a"}, {"const": "b"}]}
            {"type": "integer"} "!" {"oneOf": [{"type": "integer"}, {"type": "number"}]}
            {"oneOf": [{"properties": {"t": {"const": 1}}, "required": ["t"], "type": "object"}]} "<"
                {"oneOf": [{"properties": {"t": {"const": 1}}, "required": ["t"], "type": "object"},
                    {"properties": {"t": {"const": 2}}, "required": ["t"], "type": "object"}]}
            {"allOf": [{"type": "string"}, {"minLength": 2}]} "=" {"type": "string", "minLength": 2}
            {"allOf": [{"required": ["a"]}, {"required": ["b"]}]} "=" {"required": ["a", "b"]}
            {"type": "string"} "<" {"not": {"type": "null"}}
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}
                "<" {"$ref": "#/$defs/B", "$defs": {"B": {"type": "number"}}}
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}
                "!" {"$ref": "#/$defs/A", "$defs": {"A": {"type": "null"}}}
            {"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}
                "<" {"properties": {"next": {"$ref": "#"}, "n": {"type": "number"}}}
            {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "n": {"type": "string"}}}
                "!" {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "n": {"type": "null"}}}
            {"properties": {"a": {"type": "string"}}} "!" {"anyOf": [{"$ref": "#/$defs/A", "required": ["b"]},
                {"$ref": "#/$defs/A"}], "$defs": {"A": {"properties": {"a": {"type": "null"}}}}}
            {"$ref": "#"} "<" {}
            {"$ref": "https://example.org/x"} "<" {}
            {"properties": {"a": {"$id": "x", "type": "string"}}} "<" {}
        }
    }

    #[test]
    fn what_is_not_understood_is_not_shown() {
        table! {
            {"title": "A", "x-order": 1, "$comment": "c"} "=" {"examples": [1], "readOnly": true}
            {"contains": {"const": 1}} "<" {}
            {"contains": {"const": 1}, "minContains": 0} "!" {"contains": {"const": 1}}
            {"if": {"const": 1}, "then": false, "title": "A"} "=" {"if": {"const": 1}, "then": false}
            {"made-up": 1} "<" {}
            {"made-up": 1} "!" {"made-up": 2}
            {"made-up": 1, "type": "null"} "<" {"made-up": 1}
            {"properties": {"a": true}, "unevaluatedProperties": false} "!" {"unevaluatedProperties": false}
            {"$schema": "http://json-schema.org/draft-07/schema#"} "!" {}
        }
    }

    #[test]
    fn a_reason_names_the_place_and_the_values() {
        #[rustfmt::skip]
        let rows = [
            (json!(true), json!({"type": "string"}), "/type: values of type null, boolean, number, array, object"),
            (json!({}), json!({"required": ["a"]}), "/required: objects without `a`"),
            (json!({}), json!({"properties": {"a/b": {"type": "string"}}}),
                "/properties/a~1b: any value as the undeclared property `a/b`"),
            (json!({"enum": [1, 2, 3]}), json!({"enum": [1, 3]}), ": the value 2"),
            (json!({"enum": ["x"]}), json!({"pattern": "x"}), "/pattern: `pattern` \"x\" is not evaluated"),
            (json!({}), json!({"additionalProperties": false}), "/additionalProperties: undeclared properties"),
            (json!({"items": {"type": "number"}}), json!({"items": {"$ref": "#/$defs/N"}, "$defs": {"N": {"type": "integer"}}}),
                "/$defs/N/type: values of type fraction"),
        ];
        for (sub, sup, expected) in rows {
            let found = accepts_all(&sub, &sup);
            let told: Vec<_> =
                found.iter().map(|reason| format!("{}: {}", reason.path, reason.message)).collect();
            assert_eq!(told.join("; "), expected);
        }
    }

    #[test]
    fn a_schema_beyond_the_limits_is_refused_and_not_followed_for_ever() {
        let chain = |leaf: Value| (0..200).fold(leaf, |inner, _| json!({"items": inner}));
        let deep = accepts_all(&chain(json!({"const": 1})), &chain(json!({"type": "integer"})));
        assert_eq!(deep[0].message, "the schema is too deep or too large");
        let choice = json!({"anyOf": [{"minimum": 1}, {"minimum": 2}, {"minimum": 3}]});
        let wide = json!({"allOf": vec![choice; 40]});
        assert!(!accepts_all(&wide, &json!({"minLength": 1})).is_empty());
    }
}
