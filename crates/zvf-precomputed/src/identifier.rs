//! Identifiers of properties and attributes, which have to be names in a shader.

use std::collections::BTreeSet;

/// Names that shaders, their built-in functions and the viewer define. Longest names are no matter
/// here: a name is only prefixed if it is equal to one of these.
const RESERVED: &[&str] = &[
    "abs",
    "active",
    "all",
    "any",
    "asm",
    "atan",
    "attribute",
    "bool",
    "break",
    "case",
    "cast",
    "ceil",
    "class",
    "color",
    "const",
    "continue",
    "cos",
    "cross",
    "default",
    "degrees",
    "discard",
    "distance",
    "do",
    "dot",
    "double",
    "else",
    "enum",
    "exp",
    "extern",
    "external",
    "false",
    "filter",
    "fixed",
    "flat",
    "float",
    "floor",
    "for",
    "fract",
    "goto",
    "half",
    "highp",
    "id",
    "if",
    "in",
    "inline",
    "inout",
    "input",
    "int",
    "interface",
    "invariant",
    "layout",
    "length",
    "log",
    "long",
    "lowp",
    "main",
    "mat2",
    "mat3",
    "mat4",
    "max",
    "mediump",
    "min",
    "mix",
    "mod",
    "namespace",
    "noinline",
    "normal",
    "normalize",
    "out",
    "output",
    "packed",
    "partition",
    "position",
    "pow",
    "precision",
    "public",
    "radians",
    "reflect",
    "refract",
    "resource",
    "return",
    "round",
    "sample",
    "segment",
    "short",
    "sign",
    "sin",
    "sizeof",
    "smooth",
    "sqrt",
    "static",
    "step",
    "struct",
    "superp",
    "switch",
    "tan",
    "template",
    "texture",
    "this",
    "true",
    "trunc",
    "typedef",
    "uint",
    "uniform",
    "union",
    "unsigned",
    "using",
    "varying",
    "vec2",
    "vec3",
    "vec4",
    "void",
    "volatile",
    "while",
];

/// Returns an identifier for each name, distinct and of the form `[a-z][a-zA-Z0-9_]*`.
///
/// ```
/// use zvf_precomputed::property_ids;
///
/// assert_eq!(property_ids(["FA", "a b", "a_b"]), ["fA", "a_b", "a_b2"]);
/// ```
pub fn property_ids<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    distinct(names, cleaned)
}

/// Returns an identifier for each name as [`property_ids`] does, that is also not the name of
/// something else in a shader. Skeleton shaders define a macro of the plain name.
///
/// ```
/// use zvf_precomputed::shader_ids;
///
/// assert_eq!(shader_ids(["radius", "length", "xyz"]), ["radius", "v_length", "v_xyz"]);
/// ```
pub fn shader_ids<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    distinct(names, |name| {
        let id = cleaned(name);
        let is_reserved =
            RESERVED.contains(&id.as_str()) || is_swizzle(&id) || id.starts_with("gl_");
        if is_reserved { format!("v_{id}") } else { id }
    })
}

fn distinct<'a>(
    names: impl IntoIterator<Item = &'a str>,
    id_of: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut used = BTreeSet::new();
    let ids = names.into_iter().map(|name| {
        let id = id_of(name);
        let numbered = (2_u64..).map(|number| format!("{id}{number}"));
        let mut candidates = core::iter::once(id.clone()).chain(numbered);
        // The candidates do not end, so that one is free.
        let free = candidates.find(|candidate| used.insert(candidate.clone()));
        free.unwrap_or(id)
    });
    ids.collect()
}

/// Replaces other characters by `_`, of which shaders allow no two in a row.
fn cleaned(name: &str) -> String {
    let mut id = String::with_capacity(name.len());
    for letter in name.chars() {
        let letter = if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        };
        if id.is_empty() {
            match letter {
                '_' => {}
                'a'..='z' => id.push(letter),
                'A'..='Z' => id.push(letter.to_ascii_lowercase()),
                digit => id.extend(['p', digit]),
            }
        } else if letter != '_' || !id.ends_with('_') {
            id.push(letter);
        }
    }
    let id = id.trim_end_matches('_');
    if id.is_empty() {
        "p".to_owned()
    } else {
        id.to_owned()
    }
}

fn is_swizzle(id: &str) -> bool {
    let is_of = |letters: &str| id.chars().all(|letter| letters.contains(letter));
    id.len() <= 4 && (is_of("xyzw") || is_of("rgba") || is_of("stpq"))
}
