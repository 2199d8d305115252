/** A chunk and its weight after gzip. */
export interface Chunk {
  name: string;
  bytes: number;
}
/** What is loaded at once and what later. */
export interface Weight {
  entry: Chunk[];
  entryBytes: number;
  lazy: Chunk[];
}
export declare const ENTRY_BYTES_MAX: number;
export declare const LAZY_BYTES_MAX: number;
/** What is loaded at once and what later, with the weight of each. */
export declare function weigh(dist: string): Weight;
/** What is too heavy, in words; nothing where all is well. */
export declare function tooHeavy(weight: Weight): string[];
