//! The modules of each crate, read as tokens: the paths each file names and the types it defines.
//!
//! Tokens rather than text, so that comments, strings and line breaks cannot mislead; tokens rather
//! than a syntax tree, because paths inside macros count as well. Code under `#[cfg(test)]` is left
//! out: tests may look at anything.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::files;

/// Segments of a module path below the crate's root; empty for the root.
pub(super) type ModulePath = Vec<String>;

/// A crate as a set of modules, one per file.
pub(super) struct Crate {
    /// The folder that holds `src`, which is also the name of the package.
    pub(super) name: String,
    pub(super) modules: BTreeMap<ModulePath, Module>,
}

/// One source file.
#[derive(Default)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    /// Absolute paths below the crate's root that the file names, each once.
    pub(super) names: Vec<Vec<String>>,
    /// Names that `pub use` gives to items of other modules.
    reexports: BTreeMap<String, Vec<String>>,
    /// Types that the whole crate or its users can name.
    pub(super) types: Vec<String>,
}

/// Reads every crate below `crates`, and `xtask`.
pub(super) fn crates() -> Result<Vec<Crate>> {
    let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
    for (file, text) in files::sources(&["crates", "xtask"])? {
        let Some((package, path)) = module_path(&file) else {
            continue;
        };
        let module = Module::parse(file.clone(), &path, &text)
            .map_err(|error| anyhow!("{}: {error}", file.display()))?;
        let of = crates.entry(package.clone()).or_insert_with(|| Crate {
            name: package,
            modules: BTreeMap::new(),
        });
        of.modules.insert(path, module);
    }
    Ok(crates.into_values().collect())
}

/// Splits `crates/NAME/src/a/b.rs` into the package and the module path; `None` outside `src`, for
/// separate binaries and for unit tests in files of their own.
fn module_path(file: &Path) -> Option<(String, ModulePath)> {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let src = parts.iter().position(|part| *part == "src")?;
    let package = (*parts.get(src.checked_sub(1)?)?).to_owned();
    let (last, folders) = parts.get(src + 1..)?.split_last()?;
    let stem = last.strip_suffix(".rs")?;
    let mut path: Vec<String> = folders.iter().map(ToString::to_string).collect();
    if !["lib", "main", "mod"].contains(&stem) {
        path.push(stem.to_owned());
    }
    let left_out =
        path.first().is_some_and(|first| first == "bin") || path.iter().any(|part| part == "tests");
    (!left_out).then_some((package, path))
}

impl Module {
    fn parse(file: PathBuf, path: &[String], text: &str) -> Result<Self, proc_macro2::LexError> {
        let mut module = Self {
            file,
            ..Self::default()
        };
        module.read(text.parse()?, path);
        module.names.sort();
        module.names.dedup();
        Ok(module)
    }

    /// Reads the tokens of a module, a function or an expression inside `base`.
    fn read(&mut self, tokens: TokenStream, base: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut is_public = false;
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at + 1..];
            at += 1;
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' && is_test_only(rest.first()) => {
                    at += 1 + item_length(rest.get(1..).unwrap_or_default());
                }
                TokenTree::Group(group) => {
                    // The rest of `pub(crate)`; what `pub(super)` shows is private to a folder.
                    is_public &= group.delimiter() == Delimiter::Parenthesis
                        && group.stream().to_string() == "crate";
                    self.read(group.stream(), base);
                }
                TokenTree::Ident(ident) => match ident.to_string().as_str() {
                    "pub" => is_public = true,
                    "use" => {
                        let length = rest
                            .iter()
                            .take_while(|token| !is_punct(token, ';'))
                            .count();
                        self.import(&rest[..length], base, is_public);
                        at += length;
                        is_public = false;
                    }
                    "mod" => {
                        if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                            (rest.first(), rest.get(1))
                        {
                            let inner = [base, &[name.to_string()]].concat();
                            self.read(body.stream(), &inner);
                            at += 2;
                        }
                        is_public = false;
                    }
                    "struct" | "enum" | "trait" | "union" | "type" if is_public => {
                        if let Some(TokenTree::Ident(name)) = rest.first() {
                            self.types.push(name.to_string());
                        }
                        is_public = false;
                    }
                    "crate" | "self" | "super"
                        if rest.first().is_some_and(|it| is_punct(it, ':')) =>
                    {
                        let (path, length) = simple_path(&tokens[at - 1..]);
                        self.names.extend(absolute(&path, base));
                        at += length - 1;
                    }
                    // `pub unsafe trait` and the like.
                    _ => {
                        is_public &=
                            ["unsafe", "async", "const"].contains(&ident.to_string().as_str());
                    }
                },
                _ => is_public = false,
            }
        }
    }

    /// Reads the text between `use` and its semicolon.
    fn import(&mut self, tokens: &[TokenTree], base: &[String], is_public: bool) {
        for (path, name) in use_tree(tokens, &[]) {
            let relative =
                !["crate", "self", "super"].contains(&path.first().map_or("", String::as_str));
            if is_public {
                let target = if relative {
                    Some([base, &path].concat())
                } else {
                    absolute(&path, base)
                };
                if let Some(target) = target {
                    self.reexports.insert(name, target);
                }
            }
            if !relative {
                self.names.extend(absolute(&path, base));
            }
        }
    }
}

impl Crate {
    /// The module that defines what `path` names, with re-exports followed.
    pub(super) fn owner(&self, path: &[String]) -> ModulePath {
        let mut path = path.to_vec();
        // Re-exports that lead in a circle do not compile; the bound is for text that is no Rust.
        for _ in 0..8 {
            let length = (0..=path.len()).rev();
            let mut lengths = length.filter(|length| self.modules.contains_key(&path[..*length]));
            let Some(length) = lengths.next() else {
                return Vec::new();
            };
            let (module, rest) = path.split_at(length);
            let target = rest.first().and_then(|name| {
                let target = self.modules.get(module)?.reexports.get(name)?;
                (target.as_slice() != path.as_slice()).then_some(target)
            });
            match target {
                Some(target) => {
                    path = [target.as_slice(), rest.get(1..).unwrap_or_default()].concat();
                }
                None => return module.to_vec(),
            }
        }
        Vec::new()
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// Tests an attribute's brackets for `cfg(test)` or `cfg(all(test, …))`.
fn is_test_only(attribute: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = attribute else {
        return false;
    };
    let text = group.stream().to_string();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not")
}

/// Counts the tokens of the item that starts here: up to its semicolon or its body.
fn item_length(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| {
        is_punct(token, ';')
            || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let end = tokens.iter().position(ends);
    end.map_or(tokens.len(), |end| end + 1)
}

/// Reads `a::b::c` and returns its segments and how many tokens they take.
fn simple_path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
        path.push(ident.to_string());
        at += 1;
        let is_separator =
            |offset: usize| tokens.get(at + offset).is_some_and(|it| is_punct(it, ':'));
        if !(is_separator(0) && is_separator(1)) {
            break;
        }
        at += 2;
    }
    (path, at.max(1))
}

/// Expands `a::{b, c as d}` into pairs of a path and the name that it is given.
fn use_tree(tokens: &[TokenTree], prefix: &[String]) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for branch in tokens.split(|token| is_punct(token, ',')) {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut at = 0;
        while let Some(token) = branch.get(at) {
            at += 1;
            match token {
                TokenTree::Ident(ident) if *ident == "as" => {
                    name = branch.get(at).map(ToString::to_string);
                    break;
                }
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    found.extend(use_tree(&inner, &path));
                    path.clear();
                }
                _ => {}
            }
        }
        // `a::{self}` names `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last().cloned() {
            found.push((path, name.unwrap_or(last)));
        }
    }
    found
}

/// Resolves a path that starts with `crate`, `self` or `super` in its module.
fn absolute(path: &[String], base: &[String]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([base, rest].concat()),
        "super" => {
            let up = path
                .iter()
                .take_while(|segment| *segment == "super")
                .count();
            let parent = base.get(..base.len().checked_sub(up)?)?;
            Some([parent, &path[up..]].concat())
        }
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A crate of these modules, each a path and its source.
    pub(in super::super) fn krate(modules: &[(&str, &str)]) -> Crate {
        let parsed = modules.iter().map(|(path, text)| {
            let file = PathBuf::from(format!("crates/c/src/{path}.rs"));
            let (_, path) = module_path(&file).unwrap();
            let module = Module::parse(file, &path, text).unwrap();
            (path, module)
        });
        Crate {
            name: "c".to_owned(),
            modules: parsed.collect(),
        }
    }

    fn names(text: &str) -> Vec<String> {
        let krate = krate(&[("a/b", text)]);
        let module = krate.modules.into_values().next().unwrap();
        module.names.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn paths_are_found_in_imports_and_in_code() {
        let text = "use crate::{x::Y, z::{self, W as V}}; fn f() { super::g(); vec![self::h::I] }";
        assert_eq!(names(text), ["a::b::h::I", "a::g", "x::Y", "z", "z::W"]);
    }

    #[test]
    fn comments_strings_tests_and_other_crates_do_not_count() {
        let text = "//! crate::no\nuse std::fmt; const S: &str = \"crate::no\";\n\
            #[cfg(test)] mod tests { use crate::no; } #[cfg(test)] use crate::no;";
        assert!(names(text).is_empty());
    }

    #[test]
    fn super_inside_an_inline_module_is_the_file() {
        assert_eq!(names("mod inner { use super::X; }"), ["a::b::X"]);
    }

    #[test]
    fn reexports_lead_to_the_module_that_defines_the_item() {
        let krate = krate(&[
            ("lib", "mod a; pub use a::Item;"),
            ("a", "mod deep; pub(crate) use deep::Item;"),
            ("a/deep", "pub struct Item;"),
        ]);
        assert_eq!(krate.owner(&["Item".to_owned()]), ["a", "deep"]);
    }

    #[test]
    fn only_public_and_crate_visible_types_are_listed() {
        let text = "pub struct A; pub(crate) enum B {} struct C; pub unsafe trait D { type E; } \
            pub type F = u8; impl D for A { type E = u8; } pub fn f() { struct G; } pub(super) struct H;";
        let krate = krate(&[("a", text)]);
        let module = krate.modules.into_values().next().unwrap();
        assert_eq!(module.types, ["A", "B", "D", "F"]);
    }
}
