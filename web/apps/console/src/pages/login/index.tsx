export { LoginPage } from "./page";
