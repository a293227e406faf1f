//! The list of rules, as text and as JSON.

use serde_json::{Value, json};
use zvf::Remedy;
use zvf_validate::rules;

/// Returns one line per rule.
pub fn rules_as_text() -> String {
    let lines = rules::all().map(|rule| {
        let severity = rule.severity.to_string();
        format!("{}  {severity:7}  {}", rule.code, rule.title)
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Returns all properties of all rules.
pub fn rules_as_json() -> Value {
    let rules = rules::all().map(|rule| {
        json!({
            "code": rule.code,
            "severity": rule.severity.to_string(),
            "level": rule.depth.number(),
            "title": rule.title,
            "meaning": rule.meaning.trim(),
            "remedy": rule.remedy.text(),
            "repairs": matches!(rule.remedy, Remedy::Repair(_)),
        })
    });
    json!({ "rules": rules.collect::<Vec<Value>>() })
}
