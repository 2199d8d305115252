export const login = {
  title: "Log in",
  text: "This page opens with a link that works once. Make one on the machine where the hub runs:",
  paste: "Link or code",
  pasteHelp: "Or paste the link that the command printed.",
  notACode: "That is neither a login link nor its code of 64 characters.",
  logIn: "Log in to this hub",
  sending: "Logging in…",
  used: "This link has been used or has expired. Make a new one with {command}.",
  failed: "Logging in failed: {message}",
};
