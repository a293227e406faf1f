//! Messages of the engine in the words of Python: options of the command are keyword arguments.

/// Names of the command and their counterparts in Python. A name precedes the shorter ones in it.
const PHRASES: [(&str, &str); 29] = [
    (
        "zvf query STORE -o all.npz, then zvf create NEW --from all.npz --bounds LOWER,UPPER",
        "zvf.create(new, source=dataset.query(), bounds=(lower, upper)) makes one",
    ),
    ("--out-of-bounds expand", "out_of_bounds='expand'"),
    ("--out-of-bounds ignore", "out_of_bounds='ignore'"),
    ("`zvf validate --repair`", "zvf.repair"),
    ("zvf pyramid --overwrite", "Dataset.pyramid(overwrite=True)"),
    ("zvf pyramid --refresh", "Dataset.pyramid(refresh=True)"),
    ("zvf pyramid", "Dataset.pyramid"),
    ("zvf query --row-ids", "Dataset.query(row_ids=True)"),
    ("zvf edit --attributes", "Dataset.write_attributes"),
    ("zvf edit --from", "Dataset.replace"),
    ("zvf edit", "Dataset.replace"),
    ("zvf append", "Dataset.append"),
    ("zvf query -o", "Dataset.save"),
    ("zvf query", "Dataset.query"),
    ("zvf delete", "Dataset.delete"),
    ("zvf compact", "Dataset.compact"),
    ("zvf create", "zvf.create"),
    ("zvf migrate", "zvf.migrate"),
    ("zvf validate", "zvf.validate"),
    ("zvf repair", "zvf.repair"),
    ("--missing nan", "missing='nan'"),
    ("--mode clip", "mode='clip'"),
    ("--mode touch", "mode='touch'"),
    ("--with", "companions"),
    ("--overwrite", "overwrite=True"),
    ("--refresh", "refresh=True"),
    ("omit --strict", "pass strict=False"),
    ("--fragment-rows", "fragment_rows=True"),
    ("--assume-crs", "assume_crs=True"),
];

/// Returns a message in the words of Python.
pub(crate) fn in_python(message: &str) -> String {
    let known = PHRASES
        .iter()
        .fold(message.to_owned(), |text, (phrase, own)| {
            if text.contains(phrase) {
                replace(&text, phrase, own)
            } else {
                text
            }
        });
    options(&known)
}

/// Replaces a phrase where no letter, and no path, surrounds it.
fn replace(text: &str, phrase: &str, own: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(phrase) {
        let is_start = before
            .chars()
            .next_back()
            .or_else(|| made.chars().next_back())
            .is_none_or(is_border);
        let is_end = after
            .chars()
            .next()
            .is_none_or(|next| is_border(next) || ",;:.".contains(next));
        made.push_str(before);
        made.push_str(if is_start && is_end { own } else { phrase });
        rest = after;
    }
    made.push_str(rest);
    made
}

fn is_border(character: char) -> bool {
    character.is_whitespace() || "`(\"'".contains(character)
}

/// Writes the remaining options as names of arguments: `--chunk-shape` as `chunk_shape`.
fn options(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("--") {
        made.push_str(before);
        let is_option = made.chars().next_back().is_none_or(is_border)
            && after.starts_with(|next: char| next.is_ascii_lowercase());
        if is_option {
            let end = after
                .find(|next: char| !(next.is_ascii_lowercase() || next == '-'))
                .unwrap_or(after.len());
            let (name, tail) = after.split_at(end);
            made.push_str(&name.replace('-', "_"));
            rest = tail;
        } else {
            made.push_str("--");
            rest = after;
        }
    }
    made.push_str(rest);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_arguments() {
        for (message, expected) in [
            (
                "row 3 has no value; or store NaN with --missing nan",
                "row 3 has no value; or store NaN with missing='nan'",
            ),
            (
                "name them, for example --axes x,y; it has a",
                "name them, for example axes x,y; it has a",
            ),
            (
                "leave it out with --select, or omit --strict",
                "leave it out with select, or pass strict=False",
            ),
            (
                "raise --memory; `zvf validate --repair` says so",
                "raise memory; zvf.repair says so",
            ),
            (
                "zvf pyramid --refresh makes it anew",
                "Dataset.pyramid(refresh=True) makes it anew",
            ),
            ("set --chunk-shape", "set chunk_shape"),
            (
                "rewrite the store; zvf query STORE -o all.npz, then zvf create NEW --from all.npz \
                 --bounds LOWER,UPPER",
                "rewrite the store; zvf.create(new, source=dataset.query(), bounds=(lower, upper)) makes one",
            ),
            (
                "a--b.csv and /x/zvf create/--a are files -- of mine",
                "a--b.csv and /x/zvf create/--a are files -- of mine",
            ),
        ] {
            assert_eq!(in_python(message), expected);
        }
    }
}
