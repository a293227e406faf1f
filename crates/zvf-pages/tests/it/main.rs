//! Requests for large pages change nothing but the pages.

use zvf_pages::prefer_large;

#[test]
fn the_contents_are_unchanged() {
    for len in [0, 1, 1000, 1 << 20, 9 << 20] {
        let mut bytes: Vec<u64> = (0..len).collect();
        prefer_large(&mut bytes);
        assert!(bytes.iter().copied().eq(0..len));
        bytes.reserve_exact(5 << 20);
        prefer_large(&mut bytes);
        bytes.extend(len..len + 1000);
        assert!(bytes.iter().copied().eq(0..len + 1000));
    }
}

#[test]
fn zero_sized_types_have_no_pages() {
    let mut nothing = vec![(); 1 << 30];
    prefer_large(&mut nothing);
    assert_eq!(nothing.len(), 1 << 30);
}

/// The flags of the mapping that contains the vector show the advice, unless the kernel does not
/// support it.
#[cfg(target_os = "linux")]
#[test]
fn the_system_receives_the_advice() {
    let mut bytes: Vec<u8> = vec![0; 64 << 20];
    prefer_large(&mut bytes);
    bytes.fill(1);
    let middle = bytes[32 << 20..].as_ptr().addr();
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let number = |word| usize::from_str_radix(word, 16).ok();
        Some(number(start)?..number(end)?)
    };
    let mut lines = maps.lines();
    let found = lines.find(|line| range(line).is_some_and(|range| range.contains(&middle)));
    assert!(found.is_some());
    let flags = lines.find(|line| line.starts_with("VmFlags:")).unwrap();
    let has_them = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    assert_eq!(flags.split(' ').any(|flag| flag == "hg"), has_them);
}
