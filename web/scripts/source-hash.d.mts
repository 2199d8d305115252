/** The hash of the sources below the folder `web`, as hexadecimal digits. */
export declare function sourceHash(webDir: string): string;
