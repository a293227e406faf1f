//! Symbol names in the output of `nm`.

/// Returns the name in each line: the last word, after an optional address and a kind.
pub(crate) fn names(listing: &str) -> Vec<String> {
    let name = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [.., kind, name] if kind.len() == 1 => Some((*name).to_owned()),
            _ => None,
        }
    };
    listing.lines().filter_map(name).collect()
}

/// Selects the symbols of the panic machinery. The panic handler itself (`rust_begin_unwind`, in
/// any mangling) is not a call into it.
pub(crate) fn panics(names: &[String]) -> Vec<String> {
    let about = |name: &&String| name.to_ascii_lowercase().contains("panic");
    let handler = |name: &&String| name.contains("rust_begin_unwind");
    let panics = names.iter().filter(|name| about(name) && !handler(name));
    panics.cloned().collect()
}

/// Returns whether `name` is the C symbol `symbol`, which some platforms prefix with `_`.
pub(crate) fn is(name: &str, symbol: &str) -> bool {
    name == symbol || name.strip_prefix('_') == Some(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "
0000000000003e30 d _DYNAMIC
                 w __cxa_finalize@@GLIBC_2.2.5
00000000000011a0 T zvf_walk
0000000000001290 t _RNvNtCs3Xy_4core9panicking18panic_bounds_check
00000000000012b0 t _RNvCs1_7___rustc17rust_begin_unwind
00000000000012c0 t _ZN4core6option13expect_failed17h0123E.PANIC.1

probe.o:
";

    #[test]
    fn takes_the_name_of_each_symbol() {
        let names = names(LISTING);
        assert_eq!(names.len(), 6);
        assert_eq!(names[1], "__cxa_finalize@@GLIBC_2.2.5");
        assert!(is(&names[2], "zvf_walk") && is("_zvf_walk", "zvf_walk"));
        assert!(!is("zvf_walk_2", "zvf_walk"));
    }

    #[test]
    fn finds_panics_whatever_their_case() {
        let panics = panics(&names(LISTING));
        assert_eq!(panics.len(), 2);
        assert!(panics[0].ends_with("panic_bounds_check"));
    }

    #[test]
    fn the_handler_is_no_panic() {
        let names = names("0 T _7___rustc17rust_begin_unwind_panic\n1 T zvf_walk");
        assert!(panics(&names).is_empty());
    }
}
