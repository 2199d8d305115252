export const login = {
  title: "登录",
  text: "本页需要用一次性链接打开。请在运行 Hub 的机器上生成链接：",
  paste: "链接或代码",
  pasteHelp: "也可以粘贴该命令输出的链接。",
  notACode: "这既不是登录链接，也不是其中的 64 位代码。",
  logIn: "登录此 Hub",
  sending: "正在登录…",
  used: "此链接已被使用或已过期。请用 {command} 生成新的链接。",
  failed: "登录失败：{message}",
};
