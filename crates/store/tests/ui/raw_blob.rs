use runyard_store::{Blobs, MemoryStore};

fn main() {
    let _ = MemoryStore::new().put(b"what no redactor saw".to_vec());
}
