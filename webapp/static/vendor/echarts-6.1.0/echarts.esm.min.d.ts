export { init } from "echarts";
