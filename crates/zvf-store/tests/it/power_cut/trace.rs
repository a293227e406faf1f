//! The output of `strace` as calls that change files.

use std::collections::BTreeMap;

/// Arguments of `strace`: all threads, paths of descriptors, all text as hexadecimal numbers.
pub(super) const ARGUMENTS: [&str; 7] = [
    "-f",
    "-y",
    "-xx",
    "-s",
    "100000",
    "-e",
    "trace=open,openat,creat,write,pwrite64,rename,renameat,renameat2,link,linkat,unlink,unlinkat,\
     rmdir,mkdir,mkdirat,fsync,fdatasync,ftruncate,stat,statx,newfstatat",
];

/// A call that succeeded. Paths are relative to the recorded folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// A file was created, or opened and emptied.
    Create(String),
    Write(String, Vec<u8>),
    Rename(String, String),
    Link(String, String),
    Remove(String),
    MakeFolder(String),
    Sync(String),
    /// A mark with this number was looked up.
    Mark(usize),
}

/// Returns the calls below `folder`, and calls that look up a path that starts with `mark`.
pub(super) fn parse(trace: &str, folder: &str, mark: &str) -> Vec<Call> {
    // Starts of calls, and their places in `calls`.
    let mut unfinished: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((process, text)) = line.split_once(' ') else {
            continue;
        };
        let text = text.trim_start();
        if let Some(start) = text.strip_suffix(" <unfinished ...>") {
            // A sync covers what was written before it began.
            if is_sync(start) {
                calls.push(call(&format!("{start}) = 0"), folder, mark));
            } else {
                unfinished.insert(process, (start, calls.len()));
                calls.push(None);
            }
            continue;
        }
        let Some(rest) = text.strip_prefix("<... ") else {
            calls.push(call(text, folder, mark));
            continue;
        };
        if is_sync(rest) {
            continue;
        }
        let (start, place) = unfinished.remove(process).unwrap_or_default();
        let end = rest.split_once(" resumed>").unwrap_or_default().1;
        let made = call(&format!("{start}{end}"), folder, mark);
        match made {
            // Another thread may create a file in a folder before the call that makes it returns.
            Some(Call::MakeFolder(_)) => calls[place] = made,
            // Other calls have their effect at the latest when they return.
            made => calls.push(made),
        }
    }
    calls.into_iter().flatten().collect()
}

fn is_sync(call: &str) -> bool {
    call.starts_with("fsync") || call.starts_with("fdatasync")
}

fn call(text: &str, folder: &str, mark: &str) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let texts = texts(arguments);
    if name.contains("stat") {
        let path = texts.iter().find_map(|text| {
            let text = String::from_utf8(text.clone()).ok()?;
            text.strip_prefix(mark)?.parse().ok()
        });
        return path.map(Call::Mark);
    }
    if result.starts_with('-') {
        return None;
    }
    let paths: Vec<String> = texts
        .iter()
        .filter_map(|text| String::from_utf8(text.clone()).ok())
        .collect();
    let below = |path: &String| {
        let below = path.strip_prefix(folder)?;
        Some(below.trim_start_matches('/').to_owned())
    };
    // A call at a descriptor has the folder of the descriptor first, and then a path in it.
    let at = |base: usize| {
        if paths.get(base + 1)?.starts_with('/') {
            below(paths.get(base + 1)?)
        } else {
            below(&format!("{}/{}", paths.get(base)?, paths.get(base + 1)?))
        }
    };
    match name {
        "open" | "creat" | "openat" => {
            let is_new = ["O_CREAT", "O_TRUNC"]
                .iter()
                .any(|flag| arguments.contains(flag));
            let path = if name == "openat" {
                at(0)
            } else {
                below(paths.first()?)
            };
            path.filter(|_| is_new).map(Call::Create)
        }
        "write" | "pwrite64" => {
            let bytes = texts.get(1).cloned().unwrap_or_default();
            Some(Call::Write(below(paths.first()?)?, bytes))
        }
        "rename" => Some(Call::Rename(below(&paths[0])?, below(&paths[1])?)),
        "renameat" | "renameat2" => Some(Call::Rename(at(0)?, at(2)?)),
        "link" => Some(Call::Link(below(&paths[0])?, below(&paths[1])?)),
        "linkat" => Some(Call::Link(at(0)?, at(2)?)),
        "unlink" | "rmdir" => below(paths.first()?).map(Call::Remove),
        "unlinkat" => at(0).map(Call::Remove),
        "mkdir" => below(paths.first()?).map(Call::MakeFolder),
        "mkdirat" => at(0).map(Call::MakeFolder),
        "fsync" | "fdatasync" => below(paths.first()?).map(Call::Sync),
        other => panic!("the model has no {other}: {text}"),
    }
}

/// Returns the texts in quotes and in angle brackets, in order.
fn texts(arguments: &str) -> Vec<Vec<u8>> {
    let parts = arguments.split(['"', '<', '>']);
    let hexadecimal = parts.filter(|part| part.starts_with("\\x"));
    let decode = |part: &str| -> Vec<u8> {
        let bytes = part.split("\\x").skip(1);
        bytes
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect()
    };
    hexadecimal.map(decode).collect()
}

#[test]
fn a_folder_exists_before_the_files_that_other_threads_create_in_it() {
    use std::fmt::Write;

    let hexadecimal = |text: &str| {
        text.bytes().fold(String::new(), |mut all, byte| {
            write!(all, "\\x{byte:02x}").unwrap();
            all
        })
    };
    let (folder, file) = (hexadecimal("/f/a"), hexadecimal("/f/a/b"));
    let trace = format!(
        "1 mkdir(\"{folder}\", 0777 <unfinished ...>\n\
         2 openat(AT_FDCWD<{root}>, \"{file}\", O_WRONLY|O_CREAT, 0666) = 4<{file}>\n\
         2 write(4<{file}>, \"\\x61\", 1 <unfinished ...>\n\
         1 <... mkdir resumed>) = 0\n\
         2 <... write resumed>) = 1\n",
        root = hexadecimal("/"),
    );
    let expected = [
        Call::MakeFolder("a".to_owned()),
        Call::Create("a/b".to_owned()),
        Call::Write("a/b".to_owned(), b"a".to_vec()),
    ];
    assert_eq!(parse(&trace, "/f", "/mark"), expected);
}
