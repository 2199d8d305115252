//! Safe JSON: what any reader of any language can read back as it was written.
//!
//! `serde_json` turns NaN and infinities into null and number keys into strings without a word; here they are errors, so
//! that what was validated is what the caller gets.

use std::fmt;

use serde::ser::{self, Serialize};
use serde_json::{Map, Number, Value};

/// How deep an input or output may be nested. Below the 128 levels at which common parsers stop, envelope included.
pub const DEPTH_MAX: usize = 100;
/// How large an input may be, as compact JSON.
pub const INPUT_BYTES_MAX: usize = 1024 * 1024;
/// How large an output may be, as compact JSON.
pub const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Why a value is not safe JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsafeJson {
    /// NaN or an infinity.
    #[error("a number is not finite")]
    NotFinite,
    /// An integer that does not fit 64 bits.
    #[error("an integer does not fit 64 bits")]
    TooBig,
    /// A map with keys that are not strings.
    #[error("a map key is not a string")]
    KeyNotString,
    /// Nested deeper than [`DEPTH_MAX`].
    #[error("it is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// Larger than the limit.
    #[error("it is larger than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// The value's own `Serialize` failed.
    #[error("{0}")]
    Custom(String),
}

impl ser::Error for UnsafeJson {
    fn custom<T: fmt::Display>(message: T) -> Self {
        UnsafeJson::Custom(message.to_string())
    }
}

/// Turns a value into JSON, refusing whatever would not read back as it is.
pub fn to_safe_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, UnsafeJson> {
    value.serialize(ToValue { depth: 0 })
}

/// Checks the nesting and the size of a value that is JSON already. Never recurses deeper than [`DEPTH_MAX`].
pub(crate) fn check_limits(value: &Value, bytes_max: usize) -> Result<usize, UnsafeJson> {
    let mut bytes = 0;
    measure(value, 0, &mut bytes, bytes_max)?;
    Ok(bytes)
}

fn measure(value: &Value, depth: usize, bytes: &mut usize, max: usize) -> Result<(), UnsafeJson> {
    if depth > DEPTH_MAX {
        return Err(UnsafeJson::TooDeep);
    }
    // Close to the compact text: quotes, colon and comma are counted, escapes are not.
    *bytes += match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(_) | Value::Object(_) => 3,
    };
    if *bytes > max {
        return Err(UnsafeJson::TooLarge { max });
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| measure(item, depth + 1, bytes, max)),
        Value::Object(map) => map.iter().try_for_each(|(key, item)| {
            *bytes += key.len() + 3;
            measure(item, depth + 1, bytes, max)
        }),
        _ => Ok(()),
    }
}

/// Drops a value of any depth without recursing into it, which would overflow the stack.
pub(crate) fn dismantle(value: Value) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.into_iter().map(|(_, item)| item)),
            _ => {}
        }
    }
}

/// Turns floats that are whole numbers into integers, as JSON Schema reads them. Says whether there were any.
pub(crate) fn whole_floats_to_integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|n| number.is_f64() && n.fract() == 0.0 && n.abs() < 9.0e15);
            if let Some(whole) = whole {
                *number = Number::from(whole as i64);
            }
            whole.is_some()
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| whole_floats_to_integers(item) | any),
        Value::Object(map) => map.values_mut().fold(false, |any, item| whole_floats_to_integers(item) | any),
        _ => false,
    }
}

#[derive(Clone, Copy)]
struct ToValue {
    depth: usize,
}

impl ToValue {
    fn deeper(self) -> Result<ToValue, UnsafeJson> {
        if self.depth >= DEPTH_MAX { Err(UnsafeJson::TooDeep) } else { Ok(ToValue { depth: self.depth + 1 }) }
    }
}

struct ToArray {
    items: Vec<Value>,
    inner: ToValue,
    variant: Option<&'static str>,
}

struct ToObject {
    map: Map<String, Value>,
    key: Option<String>,
    inner: ToValue,
    variant: Option<&'static str>,
}

fn tagged(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        None => value,
        Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<Value, UnsafeJson> { Ok(Value::Number(value.into())) })*
    };
}

impl ser::Serializer for ToValue {
    type Ok = Value;
    type Error = UnsafeJson;
    type SerializeSeq = ToArray;
    type SerializeTuple = ToArray;
    type SerializeTupleStruct = ToArray;
    type SerializeTupleVariant = ToArray;
    type SerializeMap = ToObject;
    type SerializeStruct = ToObject;
    type SerializeStructVariant = ToObject;

    integers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    integers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);

    fn serialize_i128(self, value: i128) -> Result<Value, UnsafeJson> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(positive), _) => Ok(positive.into()),
            (_, Ok(negative)) => Ok(negative.into()),
            _ => Err(UnsafeJson::TooBig),
        }
    }

    fn serialize_u128(self, value: u128) -> Result<Value, UnsafeJson> {
        u64::try_from(value).map(Value::from).map_err(|_| UnsafeJson::TooBig)
    }

    fn serialize_f32(self, value: f32) -> Result<Value, UnsafeJson> {
        // Through its shortest text, so that 0.1f32 is 0.1 and not 0.10000000149011612.
        if value.is_finite() {
            self.serialize_f64(value.to_string().parse().unwrap_or(f64::from(value)))
        } else {
            Err(UnsafeJson::NotFinite)
        }
    }

    fn serialize_f64(self, value: f64) -> Result<Value, UnsafeJson> {
        Number::from_f64(value).map(Value::Number).ok_or(UnsafeJson::NotFinite)
    }

    fn serialize_bool(self, value: bool) -> Result<Value, UnsafeJson> {
        Ok(Value::Bool(value))
    }

    fn serialize_char(self, value: char) -> Result<Value, UnsafeJson> {
        Ok(Value::String(value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Result<Value, UnsafeJson> {
        Ok(Value::String(value.to_owned()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Value, UnsafeJson> {
        Ok(value.iter().copied().map(Value::from).collect())
    }

    fn serialize_none(self) -> Result<Value, UnsafeJson> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, UnsafeJson> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, UnsafeJson> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, UnsafeJson> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, UnsafeJson> {
        Ok(Value::String(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, UnsafeJson> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, UnsafeJson> {
        Ok(tagged(Some(variant), value.serialize(self.deeper()?)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ToArray, UnsafeJson> {
        // The length is only a hint from the value; a wrong one must not allocate the machine away.
        let items = Vec::with_capacity(length.unwrap_or(0).min(1024));
        Ok(ToArray { items, inner: self.deeper()?, variant: None })
    }

    fn serialize_tuple(self, length: usize) -> Result<ToArray, UnsafeJson> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<ToArray, UnsafeJson> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ToArray, UnsafeJson> {
        Ok(ToArray { variant: Some(variant), ..self.deeper()?.serialize_seq(Some(length))? })
    }

    fn serialize_map(self, length: Option<usize>) -> Result<ToObject, UnsafeJson> {
        let map = Map::with_capacity(length.unwrap_or(0).min(1024));
        Ok(ToObject { map, key: None, inner: self.deeper()?, variant: None })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<ToObject, UnsafeJson> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ToObject, UnsafeJson> {
        Ok(ToObject { variant: Some(variant), ..self.deeper()?.serialize_map(Some(length))? })
    }
}

impl ToArray {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), UnsafeJson> {
        self.items.push(value.serialize(self.inner)?);
        Ok(())
    }

    fn finish(self) -> Result<Value, UnsafeJson> {
        Ok(tagged(self.variant, Value::Array(self.items)))
    }
}

macro_rules! arrays {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for ToArray {
            type Ok = Value;
            type Error = UnsafeJson;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), UnsafeJson> { self.push(value) }
            fn end(self) -> Result<Value, UnsafeJson> { self.finish() }
        }
    )*};
}
arrays!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

impl ToObject {
    fn insert<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), UnsafeJson> {
        self.map.insert(key, value.serialize(self.inner)?);
        Ok(())
    }

    fn finish(self) -> Result<Value, UnsafeJson> {
        Ok(tagged(self.variant, Value::Object(self.map)))
    }
}

impl ser::SerializeMap for ToObject {
    type Ok = Value;
    type Error = UnsafeJson;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), UnsafeJson> {
        match key.serialize(self.inner)? {
            Value::String(key) => {
                self.key = Some(key);
                Ok(())
            }
            _ => Err(UnsafeJson::KeyNotString),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), UnsafeJson> {
        let key = self
            .key
            .take()
            .ok_or_else(|| UnsafeJson::Custom("a map value came before its key".to_owned()))?;
        self.insert(key, value)
    }

    fn end(self) -> Result<Value, UnsafeJson> {
        self.finish()
    }
}

macro_rules! objects {
    ($($trait:ident),*) => {$(
        impl ser::$trait for ToObject {
            type Ok = Value;
            type Error = UnsafeJson;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), UnsafeJson> {
                self.insert(key.to_owned(), value)
            }
            fn end(self) -> Result<Value, UnsafeJson> { self.finish() }
        }
    )*};
}
objects!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde_json::json;

    use super::*;

    #[test]
    fn a09_what_would_change_on_the_wire_is_refused() {
        assert_eq!(to_safe_value(&f64::NAN), Err(UnsafeJson::NotFinite));
        assert_eq!(to_safe_value(&[f64::INFINITY]), Err(UnsafeJson::NotFinite));
        assert_eq!(to_safe_value(&f32::NEG_INFINITY), Err(UnsafeJson::NotFinite));
        assert_eq!(to_safe_value(&BTreeMap::from([(1, "one")])), Err(UnsafeJson::KeyNotString));
        assert_eq!(to_safe_value(&HashMap::from([((1, 2), 3)])), Err(UnsafeJson::KeyNotString));
        assert_eq!(to_safe_value(&u128::MAX), Err(UnsafeJson::TooBig));
        assert_eq!(to_safe_value(&i128::MIN), Err(UnsafeJson::TooBig));
    }

    #[test]
    fn a09_nesting_and_size_have_limits() {
        let mut nested = json!(1);
        for _ in 0..DEPTH_MAX {
            nested = json!([nested]);
        }
        assert!(to_safe_value(&nested).is_ok());
        assert!(check_limits(&nested, 1000).is_ok());
        let nested = json!([nested]);
        assert_eq!(to_safe_value(&nested), Err(UnsafeJson::TooDeep));
        assert_eq!(check_limits(&nested, 1000), Err(UnsafeJson::TooDeep));
        assert_eq!(check_limits(&json!("four"), 3), Err(UnsafeJson::TooLarge { max: 3 }));
    }

    #[test]
    fn a_value_of_any_depth_is_measured_and_dropped_without_overflowing_the_stack() {
        let nested = (0..1_000_000).fold(Value::Null, |inner, at| match at % 2 {
            0 => Value::Array(vec![inner]),
            _ => Value::Object(Map::from_iter([("a".to_owned(), inner)])),
        });
        assert_eq!(check_limits(&nested, usize::MAX), Err(UnsafeJson::TooDeep));
        dismantle(nested);
    }

    #[test]
    fn whole_floats_become_integers_and_others_stay() {
        let mut value = json!({"a": 1.0, "b": [2.5, -3.0, 1e300], "c": 4});
        assert!(whole_floats_to_integers(&mut value));
        assert_eq!(value, json!({"a": 1, "b": [2.5, -3, 1e300], "c": 4}));
        assert!(!whole_floats_to_integers(&mut value));
    }

    #[test]
    fn ordinary_values_come_out_as_serde_json_gives_them() {
        #[derive(serde::Serialize)]
        enum Shape {
            Unit,
            New(u8),
            Tuple(u8, char),
            Struct { a: Option<u8>, b: () },
        }
        #[derive(serde::Serialize)]
        struct All {
            shapes: Vec<Shape>,
            map: BTreeMap<String, i64>,
            numbers: (u64, i64, f64, i128),
        }
        let all = All {
            shapes: vec![Shape::Unit, Shape::New(1), Shape::Tuple(2, 'ü'), Shape::Struct { a: None, b: () }],
            map: BTreeMap::from([("ключ".to_owned(), i64::MIN)]),
            numbers: (u64::MAX, -1, 0.1, -7),
        };
        assert_eq!(to_safe_value(&all).unwrap(), serde_json::to_value(&all).unwrap());
        assert_eq!(to_safe_value(&0.1f32).unwrap(), json!(0.1));
    }
}
