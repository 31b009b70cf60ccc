//! What every backend must do, run on each of them.

use super::memory::MemoryBackend;
use super::mirror::MirrorBackend;
use super::sled::SledBackend;
use super::{Backend, Batch};
use crate::error::Error;

/// Runs a test on a new store of each kind.
fn on_each(test: fn(&dyn Backend)) {
    let open = |dir: &tempfile::TempDir| Box::new(SledBackend::open(dir.path()).expect("opens"));
    let dirs = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    test(&MemoryBackend::new());
    test(&*open(&dirs[0]));
    test(&MirrorBackend::new(open(&dirs[1])).expect("mirrors"));
}

fn puts<K: AsRef<[u8]>, V: AsRef<[u8]>>(puts: impl IntoIterator<Item = (K, V)>) -> Batch {
    let puts = puts.into_iter().map(|(key, value)| (key.as_ref().to_vec(), value.as_ref().to_vec()));
    Batch { puts: puts.collect(), ..Batch::default() }
}

fn keys(backend: &dyn Backend, prefix: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    let mut each = |key: &[u8], _: &[u8]| {
        keys.push(key.escape_ascii().to_string());
        Ok(())
    };
    backend.scan(prefix, &mut each).expect("scans");
    keys
}

/// A new store has no epoch; a commit moves to its epoch, which never falls.
#[test]
fn epochs_only_grow() {
    on_each(|backend| {
        assert_eq!(backend.epoch(), None);
        backend.commit(7, &puts([("a", "1")])).expect("commits");
        backend.commit(7, &puts([("b", "1")])).expect("the same epoch may come twice");
        backend.commit(9, &Batch::default()).expect("an empty batch moves the epoch");
        assert_eq!(backend.epoch(), Some(9));
        assert!(backend.commit(8, &Batch::default()).is_err());
    });
}

/// Prefix removals apply first, then removals, then puts; the last put of a key wins.
#[test]
fn changes_apply_in_their_order() {
    on_each(|backend| {
        backend.commit(1, &puts([("a1", "x"), ("a2", "x"), ("a", "x"), ("b1", "x"), ("b2", "x")])).expect("commits");
        let batch = Batch {
            remove_prefixes: vec!["a".into(), "none".into()],
            removes: vec!["b1".into(), "b2".into(), "none".into()],
            ..puts([("a2", "y"), ("b2", "y"), ("b2", "z")])
        };
        backend.commit(2, &batch).expect("commits");
        assert_eq!(keys(backend, b""), ["a2", "b2"]);
        assert_eq!(backend.get(b"b2").expect("reads"), Some(b"z".to_vec()));
        assert_eq!(backend.get(b"a1").expect("reads"), None);
        backend.commit(3, &Batch { remove_prefixes: vec![vec![]], ..Batch::default() }).expect("commits");
        assert_eq!(keys(backend, b""), [""; 0]);
    });
}

/// A scan shows the keys of its prefix in byte order, whatever bytes they have, over several pages.
#[test]
fn scans_in_key_order() {
    on_each(|backend| {
        let rough: [&[u8]; 6] = [b"", b"\x00", b"\x00epoch", b"\x02\x00\x00\x00\x00", b"\xff", b"\xff\xff"];
        backend.commit(1, &puts(rough.map(|key| (key, "x")))).expect("commits");
        assert_eq!(keys(backend, b""), rough.map(|key| key.escape_ascii().to_string()));
        assert_eq!(keys(backend, b"\xff"), ["\\xff", "\\xff\\xff"]);
        let numbers: Vec<String> = (0..2048).map(|number| format!("n{number:04}")).collect();
        backend.commit(2, &puts(numbers.iter().rev().map(|key| (key, key)))).expect("commits");
        assert_eq!(keys(backend, b"n"), numbers);
    });
}

/// Values of any size come back whole, from a get and from a scan, and may grow and shrink; their pieces stay hidden.
#[test]
fn keeps_values_of_any_size() {
    on_each(|backend| {
        let sizes = [0, 1, 4095, 4096, 4097, 8192, 8193, 300_000, 5, 70_000, 0];
        let value = |size: usize, salt: usize| (0..size).map(|at| (at * 7 + salt) as u8).collect::<Vec<u8>>();
        for (epoch, size) in (1..).zip(sizes) {
            let values = [("k", value(size, 1)), ("k\0\0\0\0", value(300_000 - size, 2))];
            backend.commit(epoch, &puts(values.clone())).expect("commits");
            for (key, value) in &values {
                assert!(backend.get(key.as_bytes()).expect("reads").as_ref() == Some(value), "{size} bytes");
            }
            let mut found = Vec::new();
            let mut each = |_: &[u8], value: &[u8]| {
                found.push(value.to_vec());
                Ok(())
            };
            backend.scan(b"k", &mut each).expect("scans");
            assert!(found == values.map(|(_, value)| value), "{size} bytes");
        }
    });
}

/// An error of the reader ends its scan and not the store.
#[test]
fn a_reader_may_stop() {
    on_each(|backend| {
        backend.commit(1, &puts([("a", "1"), ("b", "2")])).expect("commits");
        let mut seen = 0;
        let mut each = |_: &[u8], _: &[u8]| {
            seen += 1;
            Err(Error::internal("enough"))
        };
        assert_eq!(backend.scan(b"", &mut each).expect_err("stops").message, "enough");
        assert_eq!((seen, keys(backend, b"").len()), (1, 2));
    });
}
