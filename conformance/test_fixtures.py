"""Files of `testdata` that programs write: with `--update` they are written, else compared byte for byte."""

import gzip

import codec_files
import describe
import drafts
import examples
from corpus import DESCRIPTION, DRAFTS, TESTDATA

ARCHIVED = "\"archive\": "
ARCHIVE, PREVIEW, PADDED = (TESTDATA / f"zvf-{name}.tar.gz" for name in ("examples", "10", "padded"))


def test_codecs(tmp_path, update, tell):
    """The encodings of the reference."""
    for codec in codec_files.CODECS:
        codec_files.write(tmp_path, codec)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if update:
        for name, data in made.items():
            (TESTDATA / "codec" / name).write_bytes(data)
    found = {path.name: path.read_bytes() for path in (TESTDATA / "codec").iterdir()}
    different = sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))
    assert not different, f"the reference writes others: {different}; `cargo xtask fixtures` rewrites them"
    tell(f"{len(made)} files are what the reference writes")


def test_examples(zvf, tmp_path, update, tell):
    """The examples of the specification in 0.9 and 0.10, and each kind of geometry in padded arrays. Archives that
    differ only in compression are equal.
    """
    ways = {
        ARCHIVE: lambda: examples.made(zvf, tmp_path / "examples"),
        PREVIEW: lambda: examples.preview(zvf, tmp_path / "preview", ARCHIVE),
        PADDED: lambda: examples.padded(zvf, tmp_path / "padded"),
    }
    for archive, make in ways.items():
        made = make()
        is_same = archive.exists() and gzip.decompress(archive.read_bytes()) == made
        if update and not is_same:
            archive.write_bytes(gzip.compress(made, 9, mtime=0))
        assert is_same or update, f"{archive.name} is not what is made now; `cargo xtask fixtures` makes it"
    tell(f"{len(examples.EXAMPLES)} examples in 0.9 and 0.10, and {len(examples.PADDED)} padded stores, are what is "
         "made of them")


def test_description(tmp_path, update, tell):
    answers = drafts.made(tmp_path)
    if update:
        DRAFTS.write_text(answers)
    assert DRAFTS.read_text() == answers, "drafts.json is not what the stores of drafts hold"
    made = describe.described(tmp_path)
    if update:
        DESCRIPTION.write_text(made)
    assert DESCRIPTION.read_text() == made, "stores.json is not what the stores are; `cargo xtask fixtures` writes it"
    tell(f"{made.count(ARCHIVED)} stores are as {DESCRIPTION.name} says")
