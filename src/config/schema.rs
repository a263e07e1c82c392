//! The JSON Schema of `flockd.toml`, from the same table of keys that reads it.

use super::keys::{Key, NAMED, SECTIONS, STAGE};
use super::merge::built_in;
use super::value::Kind;
use serde_json::{Map, Value, json};

/// The schema (draft 2020-12). Editors check `flockd.toml` with it; flockd itself checks more.
#[must_use]
pub fn schema() -> Value {
    let mut properties = Map::new();
    for section in SECTIONS {
        if section.name.is_empty() {
            for key in section.keys {
                properties.insert(key.name.to_owned(), key_schema(key));
            }
        } else {
            properties.insert(section.name.to_owned(), table(section.keys, &[]));
        }
    }
    for (named, keys) in NAMED {
        let required: &[&str] = if *named == "agents" {
            &["kind"]
        } else {
            &["agent"]
        };
        let entry = json!({
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z0-9_-]+$"},
            "additionalProperties": table(keys, required),
        });
        properties.insert((*named).to_owned(), entry);
    }
    properties.insert(
        "stages".to_owned(),
        json!({"type": "array", "items": table(STAGE, &["name"])}),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "flockd.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn table(keys: &'static [Key], required: &[&str]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| (key.name.to_owned(), key_schema(key)))
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.into()
}

fn key_schema(key: &Key) -> Value {
    let mut schema = kind_schema(key.kind);
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("description".to_owned(), key.about.into());
        if let Some(value) = built_in(key) {
            fields.insert("default".to_owned(), value.to_json());
        }
    }
    schema
}

fn kind_schema(kind: Kind) -> Value {
    let duration = r"^\s*([0-9]+\s*(ms|s|m|h|d)|0)$";
    match kind {
        Kind::Cap | Kind::Integer => json!({"type": "integer"}),
        Kind::Positive => json!({"type": "integer", "minimum": 1}),
        Kind::Count => json!({"type": "integer", "minimum": 0}),
        Kind::Target => json!({"anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^\s*(?i:0|infinite|unlimited)\s*$"},
        ]}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Duration => json!({"anyOf": [{"type": "string", "pattern": duration}, {"const": 0}]}),
        Kind::Size => json!({"anyOf": [
            {"type": "string", "pattern": r"^\s*[0-9]+\s*(B|kB|MB|GB|KiB|MiB|GiB)?$"},
            {"type": "integer", "minimum": 0},
        ]}),
        Kind::Money => json!({"type": "number", "minimum": 0}),
        Kind::Text => json!({"type": "string"}),
        Kind::Word(words) => json!({"enum": words}),
        Kind::List => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
        Kind::Require => {
            json!({"anyOf": [{"enum": ["all", "any"]}, {"type": "integer", "minimum": 1}]})
        }
    }
}
